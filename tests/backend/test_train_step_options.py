"""Gradient checkpointing and CPU kernels change no number, dropout included."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from twelve_steps import BATCH, SIZES, features

from bert_tf.backend.tensorflow import loops
from bert_tf.models import build_backbone, build_config
from bert_tf.objectives import MaskedLM, PermutationLM
from bert_tf.training.strategies import make_strategy

#: Two layers, which share weights, or of which only the second attends locally.
OWN = {"albert": {"embedding_size": 8, "num_layers": 2}, "modernbert": {"local_attention": 4, "num_layers": 2}}


def make(name):
    settings = SIZES | {"family": name, "dropout": 0.3, "attention_dropout": 0.3} | OWN.get(name, {})
    backbone = build_backbone(build_config(settings), pooler=name in ("bert", "albert"))
    if name == "xlnet":
        return PermutationLM(backbone, segments=2, memory_length=8)
    return MaskedLM(backbone, pair_task={"bert": "nsp", "albert": "sop"}.get(name))


@functools.cache
def updates(name, strategy="one", **settings):
    """What one step of plain gradient descent adds to each variable: the negative gradient."""
    keras.utils.set_random_seed(0)
    with make_strategy(strategy).scope():
        model = make(name)
        model.compile(keras.optimizers.SGD(1.0), **settings)
    rng = np.random.default_rng(1)
    for variable in sorted(model.weights, key=lambda v: v.path):
        variable.assign(rng.normal(0, 0.2, variable.shape) + variable.path.endswith("gamma"))
    before = {v.path: np.asarray(v) for v in model.trainable_variables}
    model.fit(tf.data.Dataset.from_tensor_slices(features()).batch(BATCH), verbose=0)
    return {v.path: np.asarray(v) - before[v.path] for v in model.trainable_variables}


@pytest.mark.slow_except("modernbert-settings2")
@pytest.mark.parametrize(("name", "settings"), [
    ("bert", {"strategy": "mirrored", "xla": False}), ("bert", {"xla": True}), ("modernbert", {"xla": False}),
    ("xlnet", {"xla": False}), ("albert", {"xla": False}),
])  # fmt: skip
def test_gradients_are_the_same(name, settings):
    kept, again = updates(name, **settings), updates(name, remat=True, **settings)
    assert max(np.abs(x).max() for x in kept.values()) > 0.01
    for path, expected in kept.items():
        np.testing.assert_allclose(again[path], expected, rtol=1e-5, atol=1e-5, err_msg=path)


def test_without_cpu_kernels_the_gradients_are_the_same():
    fast, plain = updates("bert"), updates("bert", cpu_kernels=False)
    for path, expected in fast.items():
        np.testing.assert_allclose(plain[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


def train_step(**settings):
    """The graph of BERT's train step."""
    model = make("bert")
    model.compile(keras.optimizers.SGD(1.0), **settings)
    model.optimizer.build(model.trainable_variables)
    batch = {name: tf.constant(value) for name, value in features().items()}
    return tf.function(model.train_step).get_concrete_function(batch).graph


def is_compiled(graph):
    """Whether anything in it is compiled."""
    return any(f.attr["_XlaMustCompile"].b for f in graph.as_graph_def().library.function)


def test_kernels_are_compiled_and_layers_computed_again_on_request():
    plain, again = (train_step(cpu_kernels=False, remat=remat) for remat in (False, True))
    assert is_compiled(train_step()) and not is_compiled(plain)
    counts = [sum(op.type == "Softmax" for op in graph.get_operations()) for graph in (plain, again)]
    assert counts[1] == counts[0] + SIZES["num_layers"]


def test_nothing_is_compiled_by_a_tensorflow_that_cannot(monkeypatch):
    """TensorFlow's TPU build, 2.20, when it computes on the CPU."""

    def fails(x):
        raise tf.errors.NotFoundError(None, None, "could not find registered transfer manager for platform Host")

    monkeypatch.setattr(loops, "loop", lambda function: fails)
    loops.compiles_for_cpus.cache_clear()
    try:
        assert not is_compiled(train_step())
    finally:
        loops.compiles_for_cpus.cache_clear()
