"""Every objective in the list passes the public check, with the families that it trains."""

import keras
import pytest

from bert_tf.models import build_backbone, build_config
from bert_tf.objectives import OBJECTIVES, MaskedLM, MaskedLMConfig
from bert_tf.objectives import settings as of
from bert_tf.testing import check_objective
from bert_tf.tokenizers import WordPieceTokenizer
from tfrecords import DenoisingConfig, MaskingConfig, ShardReader, ShardsConfig, WordsConfig, write_shards

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.2}
SIZES |= {"dropout": 0.0, "attention_dropout": 0.0}
T5_SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 32, "dropout": 0.0}
ELMO_SIZES = {"hidden_size": 12, "num_layers": 1, "units": 10, "character_size": 4, "filters": [[1, 6], [3, 6]]}
#: What a family has in place of `SIZES`.
OWN = {
    "lstm_lm": {"vocabulary_size": 20, "hidden_size": 12, "embedding_size": 8, "embedding_dropout": 0.0},
    "elmo": ELMO_SIZES | {"vocabulary_size": 262, "dropout": 0.0},
    "t5": T5_SIZES,
    "t5_decoder": T5_SIZES | {"prefix": True},
    "xlnet": SIZES,
    "electra": SIZES | {"max_positions": 32, "embedding_size": 16},
}
SPANS = MaskedLMConfig(pair_task="none", masking=MaskingConfig(strategy="span"), span_boundary=True)
# So short a text has one span by default, which is always its end.
DENOISING = of.DenoisingObjectiveConfig(denoising=DenoisingConfig(rate=0.3, mean_span=2.0), z_loss=1e-3)
#: objective, family, settings
CASES = [
    ("masked_lm", "bert", None),
    ("replaced_token_detection", "electra", None),
    ("permutation_lm", "xlnet", of.PermutationLMConfig(memory_length=7)),
    ("causal_lm", "gpt2", None),
    ("text_to_text", "t5", of.TextToTextConfig(label_smoothing=0.1)),
    # Slow: losses of the same kinds, of one stack or of two.
    ("sequence_autoencoder", "lstm_lm", None),
    ("bidirectional_lm", "transformer_bilm", None),
    ("denoising", "t5_decoder", DENOISING),
    ("masked_lm", "spanbert", SPANS),
    ("bidirectional_lm", "elmo", of.BidirectionalLMConfig(words=WordsConfig(size=24))),
    ("denoising", "t5", DENOISING),
]
#: Objectives whose corruption draws nothing.
FIXED = ("sequence_autoencoder", "bidirectional_lm")
RUNNING = ("causal_lm", "sequence_autoencoder", "bidirectional_lm", "denoising")
FORMATS = dict.fromkeys(RUNNING, "full_sentences") | {"text_to_text": "text_pairs"}


@pytest.fixture(scope="module")
def tokenizer():
    words = "a good bad film in paris anna paul met one .".split()
    sentinels = [f"<extra_id_{i}>" for i in range(4, -1, -1)]
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *sentinels])


@pytest.fixture(scope="module")
def readers(tokenizer, tmp_path_factory):
    """Name of a format -> `ShardReader`."""
    folder = tmp_path_factory.mktemp("shards")
    sentences = ["a good film .", "anna met paul in paris .", "one bad film .", "paul met anna ."]
    texts = ["\n".join(sentences[i % 4 :] + sentences) for i in range(16)]
    (folder / "corpus.txt").write_text("\n\n".join(texts))
    for name in ("segment_pair", "full_sentences"):
        config = ShardsConfig(sequence_length=32, format=name)
        write_shards([folder / "corpus.txt"], folder / name, tokenizer, config, workers=1)
    (folder / "pairs.tsv").write_text("".join(f"{sentences[i % 4]}\t{sentences[i % 3]}\n" for i in range(16)))
    config = ShardsConfig(sequence_length=12, format="text_pairs")
    write_shards([folder / "pairs.tsv"], folder / "text_pairs", tokenizer, config, workers=1)
    return {name: ShardReader(folder / name, tokenizer) for name in ("segment_pair", "full_sentences", "text_pairs")}


def backbone(family, tokenizer, pooler):
    keras.utils.set_random_seed(0)
    sizes = OWN.get(family, SIZES | {"max_positions": 32})
    return build_backbone(build_config({"family": family} | sizes, tokenizer.vocabulary_size), pooler=pooler)


def check(name, family, settings, tokenizer, readers, folder):
    reader = readers[FORMATS.get(name, "segment_pair")]
    encoder = backbone(family, tokenizer, pooler=settings is None and name == "masked_lm")
    # Once for each model is enough; tests/training/test_lowering.py compiles the other objectives.
    xla = (name, family) in (("causal_lm", "gpt2"), ("denoising", "t5"))
    check_objective(OBJECTIVES[name], encoder, reader, tokenizer, folder, settings, xla, draws=name not in FIXED)


@pytest.mark.slow_except(*(f"{name}-{family}" for name, family, _ in CASES[:5]))
@pytest.mark.parametrize(("name", "family", "settings"), CASES, ids=["{}-{}".format(*case) for case in CASES])
def test_objectives(name, family, settings, tokenizer, readers, tmp_path):
    check(name, family, settings, tokenizer, readers, tmp_path)


def test_every_objective_of_the_library_is_checked():
    own = {name for name, record in OBJECTIVES.items() if not isinstance(record.model, type)}
    assert own == {name for name, _, _ in CASES}


def test_a_loss_that_does_not_add_up_fails(tokenizer, readers, tmp_path, monkeypatch):
    monkeypatch.setattr(MaskedLM, "loss_weights", lambda self, features: {"masked_lm": keras.ops.ones(())})
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check("masked_lm", "bert", MaskedLMConfig(pair_task="none"), tokenizer, readers, tmp_path)
