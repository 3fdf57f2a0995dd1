"""The last layer is computed at some positions only."""

import numpy as np
import tensorflow as tf

from bert_tf.models import BertConfig, BertEncoder

CONFIG = BertConfig(50, 24, num_layers=4, num_heads=3, intermediate_size=40, max_positions=16)
IDS = np.random.default_rng(0).integers(5, 50, (3, 10)).astype("int32")
POSITIONS = np.array([[3, 0, 3, 9], [7, 1, 2, 4], [0, 5, 9, 8]], "int32")


def test_the_last_layer_works_at_these_positions_only():
    encoder = BertEncoder(CONFIG, dtype="float32")
    function = tf.function(lambda: encoder.outputs_at({"token_ids": tf.constant(IDS)}, tf.constant(POSITIONS)))
    graph = function.get_concrete_function().graph
    rows = {op.name: op.outputs[0].shape[0] for op in graph.get_operations() if op.type == "MatMul"}
    intermediate = [n for name, n in rows.items() if "intermediate" in name]
    assert intermediate == [30, 30, 30, 15]  # with the first of each row, for the pooler
    names = {"query": 15, "key": 30, "value": 30}
    assert {n: next(r for name, r in rows.items() if "layer_3" in name and n in name) for n in names} == names
