"""Every kind of tokenizer passes the public check, each as its trainers make it; a wrong one does not."""

import keras
import pytest

from bert_tf.testing import check_tokenizer
from bert_tf.testing.tokenizer import TEXTS
from bert_tf.tokenizers import KINDS, WordPieceTokenizer
from bert_tf.tokenizers.kinds import trainers

#: The first trainer of a kind makes it uncased, the last that can makes it cased.
CASES = []
for kind in KINDS.values():
    # As "byte", but for `sentinel_ids`.
    made = [trainer for trainer in kind.trainers if trainer.name != "byte_extra_ids"]
    choosing = [trainer for trainer in made if trainer.cased is not None]
    CASES += [(kind.name, trainer.name, False) for trainer in made if trainer not in choosing[1:]]
    CASES += [(kind.name, trainer.name, True) for trainer in choosing[-1:]]


@pytest.mark.parametrize("kind, trainer, cased", CASES)
def test_kinds(kind, trainer, cased, tmp_path):
    tokenizer = trainers()[trainer].train(
        [*TEXTS, "the quick brown fox"] * 4, 400 if kind != "sentencepiece" else 150, cased
    )
    assert tokenizer.kind == kind
    ids = tokenizer.encode("the quick brown fox")
    keras.utils.set_random_seed(1)  # empties TensorFlow's caches
    assert tokenizer.encode("the quick brown fox") == ids
    check_tokenizer(
        tokenizer, tmp_path, round_trips=TEXTS if kind in ("byte_level_bpe", "byte") else ["the quick brown fox"]
    )


def test_a_wrong_tokenizer(tmp_path):
    class Wrong(WordPieceTokenizer):
        def _encode(self, text, with_offsets):
            ids, splits, starts, _ends = super()._encode(text, with_offsets)
            return ids, splits, starts, starts

    with pytest.raises(AssertionError, match="no token has the characters"):
        check_tokenizer(Wrong(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]), tmp_path)
