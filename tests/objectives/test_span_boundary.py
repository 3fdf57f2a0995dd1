import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from numeric import gradients, largest, log_softmax

from bert_tf.errors import DataError
from bert_tf.models.bert.config import SpanBertConfig
from bert_tf.models.bert.model import SpanBertEncoder
from bert_tf.objectives import MaskedLM
from bert_tf.tokenizers.layout import Layout
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig

# What a masker asks of a tokenizer. Every fourth id continues a word.
TOKENIZER = types.SimpleNamespace(
    unk_id=1, mask_id=4, special_ids=(0, 1, 2, 3, 4), random_ids=np.arange(10, 200, dtype="int32"),
    starts_word=np.arange(200) % 4 != 3, marks_words=True, layout=Layout((2,), (3,), (), (3,)),
)  # fmt: skip
SIZES = dict(vocabulary_size=200, hidden_size=24, num_layers=1, num_heads=3, intermediate_size=40, max_positions=64)
CONFIG = SpanBertConfig(**SIZES, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)


def make(dtype="float32", pair_task=None):
    keras.utils.set_random_seed(3)
    encoder = SpanBertEncoder(CONFIG, pooler=pair_task is not None, dtype=dtype)
    return MaskedLM(encoder, pair_task=pair_task, span_boundary=True)


def batch(rows=6, length=64):
    numbers = np.random.default_rng(0)
    ids = numbers.integers(10, 200, (rows, length))
    ids = np.where(np.arange(length) % 8 > 1, 4 * (ids // 4) + 3, ids)  # long words: long spans
    ids[:, 0], ids[:, -1] = 2, 3
    corrupt = MaskedLMCorruption(TOKENIZER, MaskingConfig(rate=0.4, strategy="span"))
    given = {"token_ids": tf.constant(ids, tf.int32), "padding_mask": tf.ones((rows, length), tf.bool)}
    given |= {"example_index": tf.range(rows, dtype=tf.int64), "epoch": tf.zeros([rows], tf.int64)}
    return {k: v.numpy() for k, v in corrupt(given, seed=1).items()}


def test_sums_against_float64():
    model, features = make(), batch()
    outputs = model(features)
    assert outputs["span_boundary_logits"].shape == outputs["masked_lm_logits"].shape == (6, 26, 200)
    losses, metrics = model.loss_sums(features, training=False)
    weights = model.loss_weights(features)
    assert set(losses) == set(weights) == {"masked_lm", "span_boundary"}
    ids, real = features["mask_ids"], features["mask_weights"] > 0
    near = real & (features["mask_positions"] - features["span_left"] <= 15)
    assert near.sum() < real.sum()  # some stand too far into their span
    inside = (features["span_left"] > 0) & (features["span_right"] < 63)  # [CLS] and [SEP] stand at the ends
    assert 0 < (near & ~inside).sum() < near.sum()  # over half of them, on average
    near &= inside
    for name, counted in (("masked_lm", real), ("span_boundary", near)):
        logits = log_softmax(outputs[f"{name}_logits"])
        loss = -np.take_along_axis(logits, ids[..., None], -1)[..., 0][counted].sum()
        assert float(losses[name]) == pytest.approx(loss, rel=1e-5)
        assert float(weights[name]) == counted.sum()
        correct, total = metrics[f"{name}_accuracy"]
        assert (float(correct), float(total)) == ((logits.argmax(-1) == ids)[counted].sum(), counted.sum())


def test_the_masked_lm_is_as_without():
    with_boundaries, features = make(), batch()
    without = MaskedLM(with_boundaries.backbone)
    for ours, theirs in zip(without.masked_lm_head.weights, with_boundaries.masked_lm_head.weights):
        ours.assign(theirs)
    alone, together = without(features)["masked_lm_logits"], with_boundaries(features)["masked_lm_logits"]
    np.testing.assert_allclose(alone, together, rtol=1e-5, atol=1e-5)  # products of other shapes round otherwise


def test_each_prediction_reads_the_two_neighbours_of_its_span():
    model, features = make(), batch()
    x = np.asarray(model.backbone({k: features[k] for k in ("token_ids", "padding_mask")})["sequence_output"])
    left, right = (np.take_along_axis(x, features[k][..., None], 1) for k in ("span_left", "span_right"))
    place = features["mask_positions"] - features["span_left"] - 1
    expected = model.span_boundary_head(left, right, place, model.backbone.embedding_table)
    np.testing.assert_allclose(model(features)["span_boundary_logits"], expected, rtol=1e-4, atol=1e-4)


def test_gradients_reach_head_encoder_and_table():
    model, features = make(), batch()
    found = gradients(model, lambda: model.loss_sums(features, training=False)[0]["span_boundary"])
    for path, gradient in found.items():
        if not path.endswith("key/bias"):
            assert (largest(gradient) > 1e-4) == (not path.startswith("masked_lm_head")), path


def test_with_a_pair_head_and_in_mixed_precision():
    model, features = make("mixed_bfloat16", pair_task="sop"), batch()
    features |= {"pair_labels": np.zeros(6, "int32"), "pair_weights": np.ones(6, "float32")}
    losses, _ = model.loss_sums(features, training=False)
    assert set(losses) == {"masked_lm", "span_boundary", "pair"} == set(model.loss_weights(features))
    exact = make(pair_task="sop")
    exact.set_weights(model.get_weights())
    for name, loss in exact.loss_sums(features, training=False)[0].items():
        assert float(losses[name]) == pytest.approx(float(loss), rel=0.02)


def test_masks_without_spans_are_refused():
    features = batch()
    del features["span_left"]
    with pytest.raises(DataError, match="the batch has no 'span_left'; it has mask_ids"):
        make().loss_weights(features)
