"""Layer-wise learning rate decay: the size of each variable's update, by each original's formula."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.models.families import build_backbone, build_config
from bert_tf.tasks.heads import Classifier
from bert_tf.training.depth import depths
from bert_tf.training.layer_decay import set_layer_decay
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.optimizer_config import AdamConfig

LAYERS, RATE, DECAY = 2, 0.01, 0.5
SIZES = {"hidden_size": 8, "num_layers": LAYERS, "num_heads": 2, "intermediate_size": 16, "initializer_range": 0.3}
CONSTANT = {"learning_rate": RATE, "warmup_steps": 0, "schedule": "replace", "decay": "polynomial", "power": 0.0}


def classifier(family="bert", **settings):
    keras.utils.set_random_seed(1)
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    sizes = SIZES | ({} if family == "xlnet" else {"max_positions": 16}) | rates | settings
    return Classifier(build_backbone(build_config({"family": family} | sizes, 20)), units=3, dropout=0.0)


def features():
    random = np.random.default_rng(0)
    ids, labels = (tf.constant(random.integers(*of), tf.int32) for of in ((5, 20, (4, 6)), (0, 3, 4)))
    inputs = {"token_ids": ids, "segment_ids": tf.zeros_like(ids), "padding_mask": ids > 0}
    return inputs | {"labels": labels, "label_weights": tf.ones(4)}


def updated(model, settings, decay, variant="electra"):
    """The weights after one update."""
    optimizer = make_optimizer(settings, 10)
    set_layer_decay(optimizer, model, decay, variant)
    model.compile(optimizer, cpu_kernels=False)
    model.fit(tf.data.Dataset.from_tensors(features()), verbose=0)
    return weights(model)


def weights(model):
    return {v.path: np.asarray(v, np.float64) for v in model.trainable_variables}


def gradients(model):
    """In float32, of the mean loss of the first batch."""
    with tf.GradientTape() as tape:
        loss = model.loss_sums(features(), training=False)[0]["label"] / 4
    found = tape.gradient(loss, [v.value for v in model.trainable_variables])
    pairs = ((v.path, g) for v, g in zip(model.trainable_variables, found) if g is not None)
    return {path: np.asarray(tf.convert_to_tensor(g), np.float64) for path, g in pairs}


def depth_of(path):
    """What ELECTRA's original finds from the names of variables."""
    layer = re.search(r"transformer_layer_(\d+)/", path)
    if layer:
        return int(layer[1]) + 1
    return 0 if path.startswith("embeddings") else LAYERS + 2 - path.startswith("pooler")


def first_step(gradient, epsilon):
    """Of Adam, before it is multiplied by the rate."""
    return np.sqrt(1 - 0.999) * gradient / (np.sqrt(1 - 0.999) * np.abs(gradient) + epsilon)


def test_the_first_update_of_adamw_is_electras_formula():
    model = classifier()
    before, slopes = weights(model), gradients(model)
    settings = AdamConfig(**CONSTANT, weight_decay=0.1, clip_norm=None, epsilon=1e-3, bias_correction=True)
    after = updated(model, settings, DECAY)
    seen = set()
    for path, value in before.items():
        rate = RATE * DECAY ** (LAYERS + 2 - depth_of(path))
        seen.add(round(rate / RATE, 6))
        decayed = not re.search("bias|gamma|beta|layer_norm", path.rsplit("/", 1)[-1])
        expected = value - rate * 0.1 * value * decayed - rate * first_step(slopes[path], 1e-3)
        np.testing.assert_allclose(after[path], expected, atol=3e-7, err_msg=path)
    assert seen == {1.0, 0.5, 0.25, 0.125, 0.0625}  # head, pooler, two layers, embeddings


def test_xlnet_scales_clipped_gradients_of_layers_alone():
    model = classifier("xlnet")
    before, slopes = weights(model), gradients(model)
    norm = np.sqrt(sum(np.sum(g**2) for g in slopes.values()))
    settings = AdamConfig(**CONSTANT, weight_decay=0.1, clip_norm=norm / 2, epsilon=1e-2, bias_correction=True)
    after = updated(model, settings, 0.75, "xlnet")
    for path in slopes:
        value = before[path]
        name, layer = path.rsplit("/", 1)[-1], re.search(r"layer_(\d+)/", path)
        # One array for all layers.
        outside = name in ("content_bias", "position_bias", "segment_bias", "segment_vectors")
        factor = 0.75 ** (LAYERS - 1 - int(layer[1])) if layer and not outside else 1.0
        decay = 0.0 if re.search("bias|gamma|beta|layer_norm", name) else 0.1
        expected = value - RATE * decay * value - RATE * first_step(factor * slopes[path] / 2, 1e-2)
        np.testing.assert_allclose(after[path], expected, atol=3e-7, err_msg=path)


def test_depths_of_families():
    found, count = depths(classifier("modernbert"), "train.trainable.layer_decay")
    assert count == LAYERS and found["final_layer_norm/gamma"] == LAYERS + 1
    found, _ = depths(classifier("electra", embedding_size=4), "train.trainable.layer_decay")
    assert {d for path, d in found.items() if path.startswith("embeddings")} == {0}
    assert found["head/dense/kernel"] == LAYERS + 2
    message = "train.trainable.layer_decay treats layers differently, .* AlbertEncoder share their weights"
    with pytest.raises(ConfigError, match=message):
        depths(classifier("albert", embedding_size=4), "train.trainable.layer_decay")
