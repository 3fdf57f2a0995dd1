"""Text to text: label smoothing in float64, and packed pairs against the same pairs alone."""

import keras
import numpy as np
import pytest
from numeric import log_softmax

from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.models import T5, T5Config, Transformer, TransformerConfig
from bert_tf.objectives import TextToText, TextToTextConfig
from bert_tf.objectives.losses import cross_entropy_sums, smoothing_sum
from bert_tf.objectives.settings import ObjectiveConfig

SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24, "dropout": 0.0}
CONFIG = T5Config(37, head_size=8, **SIZES)
SOURCES, TARGETS = [[5, 6, 7, 1], [8, 1], [9, 10, 11, 1]], [[20, 21, 1], [22, 23, 24, 25, 1], [26, 1]]


def smoothed(logits, labels, smoothing, normalization):
    """The loss of each label: float64 [N] from [N, V]."""
    log_p, right, count = log_softmax(logits), np.eye(logits.shape[-1])[labels], logits.shape[-1]
    if normalization == "uniform":
        return -((right * (1 - smoothing) + smoothing / count) * log_p).sum(-1)
    q = np.where(right > 0, 1 - smoothing, smoothing / (count - 1))
    return -(q * log_p).sum(-1) + (q * np.log(q)).sum(-1)


@pytest.mark.parametrize("normalization", ["tensor2tensor", "uniform"])
def test_label_smoothing_against_float64(normalization):
    generator = np.random.default_rng(0)
    logits, labels = generator.normal(0, 3, (50, 31)).astype("float32"), generator.integers(0, 31, 50)
    weights = generator.integers(0, 2, 50).astype("float32")
    loss, _ = cross_entropy_sums(logits, labels, weights)
    found = float(loss + smoothing_sum(logits, labels, weights, 0.1, normalization))
    assert found == pytest.approx((smoothed(logits, labels, 0.1, normalization) * weights).sum(), rel=1e-5)


def test_a_perfect_fit_costs_nothing_with_tensor2tensor():
    best = np.log(np.where(np.arange(31) == 4, 0.9, 0.1 / 30)).astype("float32")[None]
    one = np.ones(1, "float32")
    cross_entropy = cross_entropy_sums(best, [4], one)[0]
    first, second = (smoothing_sum(best, np.array([4]), one, 0.1, name) for name in ("tensor2tensor", "uniform"))
    assert float(cross_entropy + first) == pytest.approx(0, abs=1e-6) and float(cross_entropy + second) > 0.3


def rows(groups):
    """The features of pairs, those of a group in one row."""

    def side(texts):
        ids = [sum((texts[i] for i in group), []) for group in groups]
        numbers = [sum(([k] * len(texts[i]) for k, i in enumerate(group, 1)), []) for group in groups]
        width = max(map(len, ids))
        return [np.array([x + [0] * (width - len(x)) for x in values], "int32") for values in (ids, numbers)]

    (source, source_numbers), (target, target_numbers) = side(SOURCES), side(TARGETS)
    positions = [np.array([[row[:i].tolist().count(k) * (k > 0) for i, k in enumerate(row)] for row in numbers], "int32")
                 for numbers in (source_numbers, target_numbers)]  # fmt: skip
    start = np.pad(target_numbers, [(0, 0), (1, 0)])[:, :-1] != target_numbers
    return {
        "token_ids": source, "padding_mask": source_numbers > 0, "sequence_ids": source_numbers,
        "target_ids": target, "decoder_sequence_ids": target_numbers,
        "decoder_token_ids": np.where(start, 0, np.pad(target, [(0, 0), (1, 0)])[:, :-1]),
        "position_ids": positions[0], "decoder_position_ids": positions[1],
        "target_weights": (target_numbers > 0).astype("float32"),
    }  # fmt: skip


@pytest.mark.parametrize("cls, config", [(T5, CONFIG), (Transformer, TransformerConfig(37, **SIZES))])
def test_packed_pairs_are_those_alone(cls, config):
    keras.utils.set_random_seed(0)
    model = TextToText(cls(config), label_smoothing=0.1)
    alone, packed = (model.loss_sums(rows(groups), training=False) for groups in ([[0], [1], [2]], [[0, 1], [2]]))
    assert float(packed[0]["text_to_text"]) == pytest.approx(float(alone[0]["text_to_text"]), rel=1e-5)
    for name in ("text_to_text_accuracy", "text_to_text_nll"):
        np.testing.assert_allclose(packed[1][name], alone[1][name], rtol=1e-5)
    assert float(packed[1]["text_to_text_nll"][1]) == 10  # without padding
    assert float(packed[1]["text_to_text_nll"][0]) < float(packed[0]["text_to_text"]) + 10


def test_settings():
    settings = TextToTextConfig(label_smoothing=0.1, label_smoothing_normalization="uniform", z_loss=1e-4)
    assert TextToText.from_settings(T5(CONFIG), settings).settings == settings
    with pytest.raises(ConfigError, match="label_smoothing"):
        build(ObjectiveConfig, {"name": "text_to_text", "label_smoothing": 1.0})
    message = "the shards have the format token_blocks; write them with format=text_pairs"
    with pytest.raises(ConfigError, match=message):
        settings.for_shards({"format": "token_blocks"}, 16)
    for name in ("masked_lm", "permutation_lm", "replaced_token_detection", "causal_lm", "denoising"):
        with pytest.raises(ConfigError, match="the format"):
            build(ObjectiveConfig, {"name": name}).for_shards({"format": "text_pairs", "pair": "none"}, 16)
