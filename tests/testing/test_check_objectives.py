"""Every objective in the list passes the public check, with the families that it trains."""

import dataclasses

import keras
import pytest

from bert_tf.models import build_config, build_encoder
from bert_tf.objectives import (
    OBJECTIVES,
    BidirectionalLMConfig,
    DenoisingObjectiveConfig,
    MaskedLMConfig,
    Objective,
    ObjectiveConfig,
    PermutationLMConfig,
    PretrainingModel,
    TextToTextConfig,
)
from bert_tf.testing import check_objective
from bert_tf.tokenizers import WordPieceTokenizer
from tfrecords import DenoisingConfig, MaskingConfig, ShardReader, ShardsConfig, WordsConfig, write_shards

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.2}
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}
OWN = {
    "lstm_lm": {"vocabulary_size": 20, "hidden_size": 12, "embedding_size": 8, "embedding_dropout": 0.0},
    "elmo": {
        "hidden_size": 12,
        "num_layers": 1,
        "units": 10,
        "character_size": 4,
        "filters": [[1, 6], [3, 6]],
        "dropout": 0.0,
    },
}
SPANS = MaskedLMConfig(pair_task="none", masking=MaskingConfig(strategy="span"), span_boundary=True)
# So short a text has one span by default, which is always its end.
DENOISING = DenoisingObjectiveConfig(denoising=DenoisingConfig(rate=0.3, mean_span=2.0), z_loss=1e-3)
#: objective, family, settings
CASES = [
    ("masked_lm", "bert", None),
    ("masked_lm", "spanbert", SPANS),
    ("replaced_token_detection", "electra", None),
    ("permutation_lm", "xlnet", PermutationLMConfig(memory_length=7)),
    ("causal_lm", "gpt2", None),
    ("causal_lm", "lstm_lm", None),
    ("sequence_autoencoder", "lstm_lm", None),
    ("bidirectional_lm", "elmo", BidirectionalLMConfig(words=WordsConfig(size=24))),
    ("bidirectional_lm", "transformer_bilm", None),
    ("denoising", "t5", DENOISING),
    ("denoising", "t5_decoder", DENOISING),
    ("text_to_text", "t5", TextToTextConfig(label_smoothing=0.1)),
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


@pytest.fixture(scope="module")
def reader(readers):
    return readers["segment_pair"]


def backbone(family, tokenizer, pooler):
    keras.utils.set_random_seed(0)
    if family in OWN:
        return build_encoder(build_config({"family": family} | OWN[family]), pooler=pooler)
    more = {} if family == "xlnet" else {"max_positions": 32}
    more |= {"embedding_size": 16} if family == "electra" else {}
    sizes = SIZES | NO_DROPOUT | more
    if family in ("t5", "t5_decoder"):
        sizes = {
            "hidden_size": 16,
            "num_layers": 1,
            "num_heads": 2,
            "head_size": 8,
            "intermediate_size": 32,
            "dropout": 0.0,
        }
        sizes |= {"prefix": True} if family == "t5_decoder" else {}
        return build_encoder(build_config({"family": family} | sizes, tokenizer.vocabulary_size), pooler=False)
    config = build_config({"family": family} | sizes, tokenizer.vocabulary_size, tokenizer.pad_id)
    return build_encoder(config, pooler=pooler)


@pytest.mark.slow_except(
    "masked_lm-bert-",
    "replaced_token_detection-electra-",
    "permutation_lm-xlnet-",
    "causal_lm-gpt2-",
    "sequence_autoencoder-lstm_lm-",
    "text_to_text-t5-",
    "denoising-t5_decoder-",
    "bidirectional_lm-transformer_bilm-",
)
@pytest.mark.parametrize(
    ("name", "family", "settings"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_objectives(name, family, settings, tokenizer, readers, tmp_path):
    reader = readers[FORMATS.get(name, "segment_pair")]
    pooler = settings is None and name == "masked_lm"
    encoder = backbone(family, tokenizer, pooler)
    # Once for each model is enough; tests/training/test_lowering.py compiles the other objectives.
    xla = name in ("causal_lm", "denoising") and family not in ("t5_decoder", "lstm_lm")
    check_objective(OBJECTIVES[name], encoder, reader, tokenizer, tmp_path, settings, xla, draws=name not in FIXED)


def test_every_objective_of_the_library_is_checked():
    own = {name for name, record in OBJECTIVES.items() if isinstance(record.model, str)}
    assert own == {name for name, _, _ in CASES}


@dataclasses.dataclass(frozen=True)
class LengthConfig(ObjectiveConfig):
    name: str = "length"


@keras.saving.register_keras_serializable("tests")
class Length(PretrainingModel):
    """Predicts the length of a sequence. With `constant` its weight is wrong: it does not add up."""

    constant = False

    def __init__(self, backbone, **kwargs):
        super().__init__(**kwargs)
        self.backbone, self.head = backbone, keras.layers.Dense(1, name="head")
        self.head.build((None, 16))
        self.built = True

    @classmethod
    def around(cls, backbone, settings, **kwargs):
        return cls(backbone, **kwargs)

    @property
    def settings(self):
        return LengthConfig()

    def call(self, features, training=False):
        inputs = {name: features[name] for name in ("token_ids", "segment_ids", "padding_mask")}
        return self.head(self.backbone(inputs, training=training)["pooled_output"])[:, 0]

    def loss_weights(self, features):
        rows = keras.ops.shape(features["token_ids"])[0]
        return {"length": keras.ops.cast(1 if self.constant else rows, "float32")}

    def loss_sums(self, features, training):
        lengths = keras.ops.sum(keras.ops.cast(features["padding_mask"], "float32"), axis=1) / 32
        return {"length": keras.ops.sum((self(features, training=training) - lengths) ** 2)}, {}


@pytest.fixture
def length():
    yield OBJECTIVES.register(Objective("length", LengthConfig, Length))
    OBJECTIVES.remove("length")


def test_an_objective_without_corruption_passes_and_a_loss_that_does_not_add_up_fails(
    length, tokenizer, reader, tmp_path, monkeypatch
):
    check_objective(length, backbone("bert", tokenizer, True), reader, tokenizer, tmp_path, xla=False)
    monkeypatch.setattr(Length, "constant", True)
    with pytest.raises(AssertionError):
        check_objective(length, backbone("bert", tokenizer, True), reader, tokenizer, tmp_path, xla=False)
