import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import SIZES, tokens

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder, build_backbone

SMALL = BertConfig(**SIZES, max_positions=16)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return BertEncoder(SMALL, dtype="float32")


def test_an_argument_that_it_does_not_have():
    for build in (BertEncoder, build_backbone):
        with pytest.raises(ConfigError, match="BertEncoder has no argument 'poler'; did you mean 'pooler'"):
            build(SMALL, poler=True)


def test_as_a_part_of_a_functional_model(encoder):
    inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
    model = keras.Model(inputs, encoder(inputs)["pooled_output"])
    ids = tokens(2, 9)
    np.testing.assert_array_equal(model({"token_ids": ids}), encoder({"token_ids": ids})["pooled_output"])


def test_input_errors(encoder):
    ids, shape = tokens(2, 4), "has the shape .* and 'token_ids' .2, 4.; give one value for each"
    numbers = "'token_ids' must be numbers: a tensor, an array or lists of one length;"
    for inputs, message in (
        ({"token_ids": ids, "segment_id": ids}, "no input 'segment_id'; did you mean 'segment_ids'"),
        ({"padding_mask": ids > 0}, r"at least 'token_ids', got \['padding_mask'\]"),
        (ids, "got ndarray"),
        ({"token_ids": ids[0].tolist()}, "2 dimensions"),
        ({"token_ids": ids, "padding_mask": np.ones((2, 5), bool)}, f"'padding_mask' {shape}"),
        ({"token_ids": ids, "segment_ids": ids[:, :1]}, f"'segment_ids' {shape}"),
        ({"token_ids": ids, "sequence_ids": tokens(3, 4)}, f"'sequence_ids' {shape}"),
        ({"token_ids": ids, "position_ids": tokens(2, 5)}, f"'position_ids' {shape}"),
        *(({"token_ids": wrong}, numbers) for wrong in ([[1, 2, 3], [4]], "a text", 5, [["a text"]])),
    ):
        with pytest.raises(DataError, match=message):
            encoder(inputs)
    with pytest.raises(ConfigError, match="sequences of 17 tokens .* max_positions=16"):
        encoder({"token_ids": tokens(1, 17)})


def test_lists_and_arrays_beside_tensors_are_inputs_too(encoder):
    ids, mask = [[1, 2, 3]], np.array([[True, True, False]])
    expected = encoder({"token_ids": np.array(ids), "padding_mask": mask})["sequence_output"]
    for given in (ids, keras.ops.convert_to_tensor(ids)):
        np.testing.assert_array_equal(encoder({"token_ids": given, "padding_mask": mask})["sequence_output"], expected)


def test_a_stateless_call_may_leave_inputs_out(encoder):
    """`predict` on JAX calls a model so."""
    ids = keras.ops.convert_to_tensor(tokens(2, 4))
    output, _ = encoder.stateless_call(encoder.trainable_variables, encoder.non_trainable_variables, {"token_ids": ids})
    np.testing.assert_array_equal(output["sequence_output"], encoder({"token_ids": ids})["sequence_output"])


def test_the_embeddings_of_another_encoder():
    first = BertEncoder(SMALL)
    second = BertEncoder(SMALL, embeddings=first.get_layer("embeddings"))
    assert second.embedding_table is first.embedding_table
    with pytest.raises(ConfigError, match="max_positions"):
        BertEncoder(dataclasses.replace(SMALL, max_positions=9), embeddings=first.get_layer("embeddings"))


def test_the_last_layer_works_at_some_positions_only():
    encoder, ids = BertEncoder(dataclasses.replace(SMALL, num_layers=4)), tf.constant(tokens(3, 10))
    positions = tf.constant([[3, 0, 3, 9], [7, 1, 2, 4], [0, 5, 9, 8]])
    graph = tf.function(lambda: encoder.outputs_at({"token_ids": ids}, positions)).get_concrete_function().graph
    rows = {op.name: op.outputs[0].shape[0] for op in graph.get_operations() if op.type == "MatMul"}
    intermediate = [n for name, n in rows.items() if "intermediate" in name]
    assert intermediate == [30, 30, 30, 15]  # with the first of each row, for the pooler
    names = {"query": 15, "key": 30, "value": 30}
    assert {n: next(r for name, r in rows.items() if "layer_3" in name and n in name) for n in names} == names
