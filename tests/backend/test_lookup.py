"""The gradient of a table, looked up and tied, is TensorFlow's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import lookup
from bert_tf.backend.lookup import Lookups

IDS = np.array([[1, 4, 1], [0, 6, 4]], "int32")  # rows that repeat
OTHERS = np.array([[4], [2]], "int32")


def make():
    numbers = np.random.default_rng(0)
    tables = [keras.Variable(numbers.normal(size=(7, 3)).astype("float32"), name=f"table_{i}") for i in range(3)]
    return tables, tf.constant(numbers.normal(size=(5, 3)).astype("float32"))


def loss(tables, x, tied):
    looked_up, alone, _ = tables
    y = tf.sin(lookup(looked_up, IDS)) * lookup(looked_up, OTHERS) + lookup(alone, IDS) ** 2
    total = tf.reduce_sum(y)
    return total + tf.reduce_sum(tf.cos(x @ tf.transpose(tf.convert_to_tensor(looked_up)))) if tied else total


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_gradients(tied, compiled):
    tables, x = make()

    @tf.function(jit_compile=compiled)
    def gradients():
        with tf.GradientTape() as tape, Lookups(tape).watched() as lookups:
            total = loss(tables, x, tied)
        found = lookups.gradients(total, tables)
        assert found[2] is None
        return found[:2]

    with tf.GradientTape() as tape:
        total = loss(tables, x, tied)
    for found, expected in zip(gradients(), tape.gradient(total, [t.value for t in tables[:2]])):
        np.testing.assert_allclose(found, tf.convert_to_tensor(expected), rtol=1e-5, atol=1e-6)


def test_no_second_table_is_made():
    tables, x = make()

    @tf.function
    def gradients():
        with tf.GradientTape() as tape, Lookups(tape).watched() as lookups:
            total = loss(tables, x, tied=True)
        return lookups.gradients(total, tables[:1])

    types = {op.type for op in gradients.get_concrete_function().graph.get_operations()}
    assert "TensorScatterAdd" in types and not types & {"UnsortedSegmentSum", "AddN"}


def test_a_frozen_table_has_no_gradient():
    tables, x = make()
    with tf.GradientTape() as tape, Lookups(tape).watched() as lookups:
        total = loss(tables, x, tied=False)
    assert [g is None for g in lookups.gradients(total, [tables[1]])] == [False]
