"""The loss in blocks is the plain one: sums and gradients, eagerly and in a graph, on every backbone."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from test_denoising_objective import batch

from bert_tf.models import T5, GPT2Config, GPT2Decoder, T5Config, T5Decoder, T5DecoderConfig
from bert_tf.objectives import CausalLM, Denoising, TextToText
from bert_tf.objectives.block_loss import block_loss_sums
from bert_tf.objectives.losses import cross_entropy_sums, smoothing_sum

SIZES = {"num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 24, "dropout": 0.0}


def plain(x, table, labels, weights, z_loss, smoothing, normalization):
    logits = ops.matmul(x, ops.transpose(table))
    loss, correct = cross_entropy_sums(logits, labels, weights)
    total = loss + z_loss * ops.sum(weights * ops.square(ops.logsumexp(logits, axis=-1)))
    return total + (smoothing_sum(logits, labels, weights, smoothing, normalization) if smoothing else 0), loss, correct


@pytest.mark.parametrize(("block", "graph", "options"), [
    (1, False, (0.0, 0.0, "uniform")),
    (4, True, (1e-2, 0.1, "tensor2tensor")),
    (7, True, (1e-2, 0.1, "uniform")),
    (64, False, (1e-2, 0.1, "tensor2tensor")),
])  # fmt: skip
def test_sums_and_gradients(options, block, graph):
    draw = np.random.default_rng(0)
    x, table = (tf.constant(draw.normal(0, 1, shape), tf.float32) for shape in ((3, 5, 6), (31, 6)))
    labels, weights = draw.integers(0, 31, (3, 5)), draw.integers(0, 3, (3, 5)).astype("float32")

    def run(function, *more):
        with tf.GradientTape() as tape:
            tape.watch([x, table])
            sums = function(x, table, labels, weights, *more)
            loss = sums[0] * 0.5  # the gradient is multiplied by what comes from above
        return [*sums, *tape.gradient(loss, [x, table])]

    expected = run(plain, *options)
    found = (tf.function(run) if graph else run)(block_loss_sums, block, *options)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("make", [
    lambda block: Denoising(T5(T5Config(37, 16, **SIZES)), z_loss=1e-3, loss_block=block),
    lambda block: TextToText(T5(T5Config(37, 16, tied=False, **SIZES)), label_smoothing=0.1, loss_block=block),
    lambda block: Denoising(T5Decoder(T5DecoderConfig(37, 16, prefix=True, **SIZES), pooler=False), loss_block=block),
    lambda block: CausalLM(GPT2Decoder(GPT2Config(37, 16, num_layers=1, num_heads=2, intermediate_size=24, dropout=0.0)), block),
], ids=["tied", "untied", "decoder", "causal_lm"])  # fmt: skip
def test_models(make):
    results = []
    for block in (None, 4):
        keras.utils.set_random_seed(0)
        model = make(block)
        assert model.settings.loss_block == block
        with tf.GradientTape() as tape:
            losses, metrics = model.loss_sums(batch(), training=True)
            (loss,) = losses.values()
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        results.append(keras.tree.flatten([losses, metrics, [tf.convert_to_tensor(g) for g in gradients]]))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-6)
