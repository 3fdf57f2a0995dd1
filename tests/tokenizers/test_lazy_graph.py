"""A tokenizer's first calls run operation by operation; later ones, and those inside a graph, run its graph."""

import tensorflow as tf

from bert_tf.tokenizers.ops.lazy_graph import EAGER_CALLS, LazyGraph


def counted():
    """(LazyGraph, list to which each run of its Python function adds whether it was eager)."""
    runs = []

    def double(x):
        runs.append(tf.executing_eagerly())
        return 2 * x

    return LazyGraph(double, tf.TensorSpec([None], tf.int32)), runs


def test_it_is_traced_once_after_the_eager_calls():
    function, runs = counted()
    answers = [function(tf.range(number)).numpy().tolist() for number in range(EAGER_CALLS + 5)]
    assert answers == [[2 * i for i in range(number)] for number in range(EAGER_CALLS + 5)]
    assert runs == [True] * EAGER_CALLS + [False]


def test_inside_a_graph_it_is_the_graph_from_the_first_call_on():
    function, runs = counted()
    for _ in range(2):
        (answer,) = tf.data.Dataset.from_tensors(tf.range(3)).map(function)
        assert answer.numpy().tolist() == [0, 2, 4]
    assert runs == [False]
