"""Gradient checkpointing and CPU kernels change no number, dropout included."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from one_step import BATCH, SIZES, TWO_LAYERS, features

from bert_tf.backend import loops
from bert_tf.models.albert import AlbertConfig, AlbertEncoder
from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.models.modernbert import ModernBertConfig, ModernBertEncoder
from bert_tf.models.xlnet import XLNetConfig, XLNetEncoder
from bert_tf.objectives import MaskedLM, PermutationLM
from bert_tf.training.strategies import make_strategy

DROPPED = SIZES | {"dropout": 0.3, "attention_dropout": 0.3}
MODELS = {
    "bert": lambda: MaskedLM(BertEncoder(BertConfig(**DROPPED)), pair_task="nsp"),
    "albert": lambda: MaskedLM(AlbertEncoder(AlbertConfig(embedding_size=8, **DROPPED | TWO_LAYERS)), pair_task="sop"),
    "modernbert": lambda: MaskedLM(ModernBertEncoder(ModernBertConfig(local_attention=4, **DROPPED | TWO_LAYERS))),
    "xlnet": lambda: PermutationLM(XLNetEncoder(XLNetConfig(**DROPPED), pooler=False), segments=2, memory_length=8),
}


@functools.cache
def updates(name, strategy="one", **settings):
    """What one step of plain gradient descent adds to each variable: the negative gradient."""
    keras.utils.set_random_seed(0)
    with make_strategy(strategy).scope():
        model = MODELS[name]()
        model.compile(keras.optimizers.SGD(1.0), **settings)
    rng = np.random.default_rng(1)
    for variable in sorted(model.weights, key=lambda v: v.path):
        variable.assign(rng.normal(0, 0.2, variable.shape) + variable.path.endswith("gamma"))
    before = {v.path: np.asarray(v) for v in model.trainable_variables}
    model.fit(tf.data.Dataset.from_tensor_slices(features()).batch(BATCH), verbose=0)
    return {v.path: np.asarray(v) - before[v.path] for v in model.trainable_variables}


@pytest.mark.slow_except("bert-settings0", "modernbert-settings2")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", {"strategy": "mirrored", "accumulation_steps": 2}),
        ("bert", {"xla": True}),
        ("modernbert", {"xla": False}),
        ("xlnet", {"xla": False}),
        ("albert", {"xla": False}),
    ],
)
def test_gradients_are_the_same(name, settings):
    kept, again = updates(name, **settings), updates(name, remat=True, **settings)
    assert max(np.abs(x).max() for x in kept.values()) > 0.01
    for path, expected in kept.items():
        np.testing.assert_allclose(again[path], expected, rtol=1e-6, atol=1e-6, err_msg=path)


@pytest.mark.slow_except("bert")
@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_without_cpu_kernels_the_gradients_are_the_same(name):
    fast, plain = updates(name), updates(name, cpu_kernels=False)
    for path, expected in fast.items():
        np.testing.assert_allclose(plain[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


def compiled(**settings):
    """Whether anything in the train step is compiled."""
    model = MODELS["bert"]()
    model.compile(keras.optimizers.SGD(1.0), **settings)
    model.optimizer.build(model.trainable_variables)
    batch = {name: tf.constant(value) for name, value in features().items()}
    definition = tf.function(model.train_step).get_concrete_function(batch).graph.as_graph_def()
    return any(f.attr["_XlaMustCompile"].b for f in definition.library.function)


def test_without_cpu_kernels_nothing_is_compiled():
    assert compiled() and not compiled(cpu_kernels=False)


def test_nothing_is_compiled_by_a_tensorflow_that_cannot(monkeypatch):
    """TensorFlow's TPU build, 2.20, when it computes on the CPU."""

    def fails(x):
        raise tf.errors.NotFoundError(None, None, "could not find registered transfer manager for platform Host")

    monkeypatch.setattr(loops, "loop", lambda function: fails)
    loops.compiles_for_cpus.cache_clear()
    try:
        assert not compiled()
    finally:
        loops.compiles_for_cpus.cache_clear()


def test_layers_are_computed_again():
    def operations(**settings):
        model = MODELS["bert"]()
        model.compile(keras.optimizers.SGD(1.0), xla=False, **settings)
        model.optimizer.build(model.trainable_variables)
        batch = {name: tf.constant(value) for name, value in features().items()}
        graph = tf.function(model.train_step).get_concrete_function(batch).graph
        return sum(op.type == "Softmax" for op in graph.get_operations())

    assert operations(remat=True) == operations() + SIZES["num_layers"]
