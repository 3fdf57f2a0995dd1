"""The gradient of a table, looked up and tied, is TensorFlow's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import lookup
from bert_tf.backend.cpu_kernels import Lookups

IDS = np.array([[1, 4, 1], [0, 6, 4]], "int32")  # rows that repeat
OTHERS = np.array([[4], [2]], "int32")


def make():
    numbers = np.random.default_rng(0)
    tables = [keras.Variable(numbers.normal(size=(7, 3)).astype("float32"), name=f"table_{i}") for i in range(3)]
    return tables, tf.constant(numbers.normal(size=(5, 3)).astype("float32"))


def untied(tables, x):
    looked_up, alone, _ = tables
    y = tf.sin(lookup(looked_up, IDS)) * lookup(looked_up, OTHERS) + lookup(alone, IDS) ** 2
    return tf.reduce_sum(y)


def tied(tables, x):
    logits = x @ tf.transpose(tf.convert_to_tensor(tables[0]))
    return untied(tables, x) + tf.reduce_sum(tf.cos(logits))


def in_a_function(tables, x):
    return tf.function(lambda: tied(tables, x))()


def in_a_loop(tables, x):
    return tf.reduce_sum(tf.map_fn(lambda row: tied(tables, row[None]), x))


def with_a_penalty(tables, x):
    with tf.GradientTape() as inner:
        total = tied(tables, x)
    return total + tf.reduce_sum(tf.convert_to_tensor(inner.gradient(total, tables[0].value)) ** 2)


def gradients_of(loss, tables, x, variables):
    with tf.GradientTape() as tape, Lookups(tape).watched() as lookups:
        total = loss(tables, x)
    return lookups.gradients(total, variables)


@pytest.mark.parametrize("loss, graph", [
    (untied, "eager"), (untied, "xla"), (tied, "graph"), (tied, "xla"), (in_a_function, "eager"), (in_a_function, "graph"),
    (in_a_loop, "eager"), (in_a_loop, "xla"), (with_a_penalty, "eager"), (with_a_penalty, "graph"),
])  # fmt: skip
def test_gradients(loss, graph):
    tables, x = make()

    def run():
        found = gradients_of(loss, tables, x, tables)
        assert found[2] is None
        return found[:2]

    found = run() if graph == "eager" else tf.function(run, jit_compile=graph == "xla")()
    with tf.GradientTape() as tape:
        total = loss(tables, x)
    for ours, expected in zip(found, tape.gradient(total, [t.value for t in tables[:2]])):
        np.testing.assert_allclose(ours, tf.convert_to_tensor(expected), rtol=1e-4, atol=1e-5)


def test_no_second_table_is_made():
    tables, x = make()
    function = tf.function(lambda: gradients_of(tied, tables, x, tables[:1]))
    types = {op.type for op in function.get_concrete_function().graph.get_operations()}
    assert "TensorScatterAdd" in types and not types & {"UnsortedSegmentSum", "AddN"}


def test_a_frozen_table_is_left_out():
    tables, x = make()
    (alone,) = gradients_of(tied, tables, x, [tables[1]])
    np.testing.assert_allclose(alone, gradients_of(tied, tables, x, tables)[1], rtol=1e-6)
