import dataclasses

import keras
import numpy as np
import pytest

from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.models import T5, BertConfig, BertEncoder, T5Config
from bert_tf.objectives import Denoising
from bert_tf.objectives.settings import ObjectiveConfig

CONFIG = T5Config(37, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=24, dropout=0.0)


def batch(rows=3, seed=0):
    generator = np.random.default_rng(seed)
    targets = generator.integers(2, 37, (rows, 7)).astype("int32")
    weights = (np.arange(7) < generator.integers(2, 8, (rows, 1))).astype("float32")
    source, padding_mask = generator.integers(2, 37, (rows, 9)), np.arange(9) < generator.integers(4, 10, (rows, 1))
    inputs = {"token_ids": source.astype("int32"), "padding_mask": padding_mask, "target_weights": weights}
    return inputs | {"target_ids": targets, "decoder_token_ids": np.pad(targets, [(0, 0), (1, 0)])[:, :-1]}


@pytest.mark.parametrize(("z_loss", "block"), [(0.0, None), (0.01, None), (0.01, 4)])
def test_loss_equals_numpy_in_float64(z_loss, block):
    """The losses of evaluation are cross-entropies, without the regularization of Z (Mesh TensorFlow transformer.py)."""
    keras.utils.set_random_seed(0)
    model, features = Denoising(T5(dataclasses.replace(CONFIG, dropout=0.0)), z_loss=z_loss, loss_block=block), batch()
    logits = np.asarray(model(features)["denoising_logits"], "float64")
    normalizer = np.log(np.exp(logits).sum(-1))
    chosen = np.take_along_axis(logits, features["target_ids"][..., None], -1)[..., 0]
    for training in (True, False):
        terms = normalizer - chosen + (z_loss * normalizer**2 if training else 0.0)
        losses, metrics = model.loss_sums(features, training=training)
        assert float(losses["denoising"]) == pytest.approx((terms * features["target_weights"]).sum(), rel=1e-5)
    correct = ((logits.argmax(-1) == features["target_ids"]) * features["target_weights"]).sum()
    assert [float(x) for x in metrics["denoising_accuracy"]] == [correct, features["target_weights"].sum()]
    assert float(model.loss_weights(features)["denoising"]) == features["target_weights"].sum()


def test_settings():
    assert Denoising(T5(CONFIG), z_loss=1e-4).settings.z_loss == 1e-4
    settings = build(ObjectiveConfig, {"name": "denoising", "denoising": {"method": "drop", "rate": 0.25}})
    assert (settings.denoising.method, settings.denoising.rate) == ("drop", 0.25)


def test_refusals():
    with pytest.raises(ConfigError, match="denoising trains encoder_decoders .* BertEncoder is an encoder"):
        Denoising(BertEncoder(BertConfig(30, 16, 2, 2, 32)))
