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
    # These differ from another one of their kind in special tokens alone; test_characters.py checks the last.
    left_out = ("byte_extra_ids", "byte_level_bpe", "unigram_t5", "characters")
    made = [trainer for trainer in kind.trainers if trainer.name not in left_out]
    choosing = [trainer for trainer in made if trainer.cased is not None]
    CASES += [(kind.name, trainer.name, False) for trainer in made if trainer not in choosing[1:]]
    CASES += [(kind.name, trainer.name, True) for trainer in choosing[-1:]]


@pytest.mark.parametrize("kind, trainer, cased", CASES)
def test_kinds(kind, trainer, cased, tmp_path):
    size = 150 if kind == "sentencepiece" else 400
    tokenizer = trainers()[trainer].train([*TEXTS, "the quick brown fox"] * 4, size, cased)
    assert tokenizer.kind == kind
    ids = tokenizer.encode("the quick brown fox")
    keras.utils.set_random_seed(1)  # empties TensorFlow's caches
    assert tokenizer.encode("the quick brown fox") == ids
    texts = TEXTS if kind in ("byte_level_bpe", "byte") else ["the quick brown fox"]
    check_tokenizer(tokenizer, tmp_path, round_trips=texts)


def test_a_wrong_tokenizer(tmp_path):
    class Wrong(WordPieceTokenizer):
        def _encode(self, text, with_offsets):
            ids, splits, starts, _ends = super()._encode(text, with_offsets)
            return ids, splits, starts, starts

    with pytest.raises(AssertionError, match="no token has the characters"):
        check_tokenizer(Wrong(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]), tmp_path)
