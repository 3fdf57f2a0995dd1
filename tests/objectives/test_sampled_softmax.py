"""Sampled softmax: TensorFlow's formula for given candidates, and the full softmax in expectation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError
from bert_tf.models import LstmLM, LstmLMConfig
from bert_tf.objectives import CausalLM, CausalLMConfig
from bert_tf.objectives.sampled_softmax import log_uniform_candidates, sampled_softmax_sum

V, H, N = 30, 5, 7


def problem():
    rng = np.random.default_rng(0)
    table, bias = (keras.Variable(rng.normal(size=s), dtype="float32") for s in ((V, H), V))
    x, labels = rng.normal(size=(N, H)).astype("float32"), rng.integers(0, V, N).astype("int32")
    return table, bias, x, labels, rng.uniform(size=N).astype("float32")


def chances(ids):
    return np.log((np.float64(ids) + 2) / (np.float64(ids) + 1)) / np.log(V + 1)


def test_given_candidates_against_tensorflow():
    table, bias, x, labels, weights = problem()
    # Some are right for a row.
    right = sorted(set(labels.tolist()))
    candidates = np.array([*right[:3], *sorted(set(range(V)) - set(right))[:3]], "int32")
    found = sampled_softmax_sum(x, table, bias, labels, weights, candidates)
    expected = [1 - (1 - chances(ids)) ** 6 for ids in (labels[:, None], candidates)]  # how often in six draws
    values = (tf.constant(candidates, tf.int64), *(tf.constant(count, tf.float32) for count in expected))
    ids = tf.cast(labels[:, None], tf.int64)
    losses = tf.nn.sampled_softmax_loss(table.value, bias.value, ids, x, 6, V, sampled_values=values)
    assert float(found) == pytest.approx(float(tf.reduce_sum(losses * weights)), rel=1e-5)
    shuffled = np.random.default_rng(2).permutation(candidates)
    again = sampled_softmax_sum(x, table, bias, labels, weights, shuffled)
    assert float(again) == pytest.approx(float(found), rel=1e-6)


def test_repeated_candidates_count_once():
    table, bias, x, labels, weights = problem()
    distinct = np.array([2, 4, 9], "int32")
    rows = np.concatenate([distinct, distinct[:1], distinct[:1]])
    with_repeats = float(sampled_softmax_sum(x, table, bias, labels, weights, rows))
    chance = 1 - (1 - chances(np.arange(V))) ** 5
    logits = x @ np.float64(table).T + np.float64(bias) - np.log(chance)
    right = logits[np.arange(N), labels]
    kept = np.where(distinct[None] == labels[:, None], 0, np.exp(logits[:, distinct]))
    expected = ((np.log(np.exp(right) + kept.sum(1)) - right) * weights).sum()
    assert with_repeats == pytest.approx(expected, rel=1e-5)


def test_candidates_have_the_distribution():
    draws = 40_000
    uniform = (np.arange(draws) + 0.5) / draws
    counts = np.bincount(log_uniform_candidates(uniform.astype("float32"), V), minlength=V)
    np.testing.assert_allclose(counts / draws, chances(np.arange(V)), atol=1e-3)
    assert len(counts) == V


def test_all_tokens_among_the_candidates_are_the_full_softmax():
    table, bias, x, labels, weights = problem()
    uniform = np.random.default_rng(1).uniform(size=5_000).astype("float32")

    def gradient(loss):
        with tf.GradientTape() as tape:
            tape.watch(inputs := tf.constant(x))
            total = loss(inputs)
        return tape.gradient(total, inputs).numpy()

    drawn = log_uniform_candidates(uniform, V)
    sampled = gradient(lambda x: sampled_softmax_sum(x, table, bias, labels, weights, drawn))
    full = gradient(lambda x: tf.reduce_sum(weights * tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels, x @ tf.transpose(table.value) + bias.value)))  # fmt: skip
    np.testing.assert_allclose(sampled, full, atol=1e-4)


def test_training_draws_anew_and_evaluation_takes_all_tokens():
    keras.utils.set_random_seed(0)
    backbone = LstmLM(LstmLMConfig(V, hidden_size=H, embedding_size=4, embedding_dropout=0.0), dtype="float32")
    model, full = CausalLM(backbone, sampled_softmax=8), CausalLM(backbone)
    features = {"token_ids": np.random.default_rng(0).integers(0, V, (3, 9)).astype("int32")}
    exact = float(full.loss_sums(features, training=False)[0]["causal_lm"])
    assert float(model.loss_sums(features, training=False)[0]["causal_lm"]) == pytest.approx(exact)
    model.compile(AdamW(0.0), seed=1)
    data = tf.data.Dataset.from_tensors({k: tf.constant(v) for k, v in features.items()})
    first = model.fit(data.repeat(2), steps_per_epoch=1, epochs=2, verbose=0).history["loss"]
    assert first[0] != first[1], "other candidates at each update"
    assert CausalLM.from_settings(backbone, model.settings).sampled_softmax == 8
    with pytest.raises(ConfigError, match="remove objective.loss_block"):
        CausalLMConfig(sampled_softmax=8, loss_block=4)
