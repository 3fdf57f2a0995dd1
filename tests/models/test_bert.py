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


def test_no_gradient_crosses_sequences_or_reaches_padding(encoder):
    inputs = {
        "token_ids": np.arange(10, 19, dtype="int32")[None],  # all different
        "sequence_ids": np.array([[1, 1, 1, 1, 2, 2, 2, 0, 0]], "int32"),
    }
    with tf.GradientTape() as tape:
        output = encoder(inputs)["sequence_output"][0, 4:7]
        loss = tf.reduce_sum(output * tf.cos(tf.range(24.0)))  # a plain sum is constant after layer norm
    gradient = tf.convert_to_tensor(tape.gradient(loss, encoder.embedding_table.value)).numpy()
    reached = np.flatnonzero(np.abs(gradient).sum(-1))
    np.testing.assert_array_equal(reached, [14, 15, 16])


def test_hidden_states_and_attention_scores_on_request(encoder):
    verbose = BertEncoder(SMALL, output_hidden_states=True, output_attention_scores=True, dtype="float32")
    verbose.set_weights(encoder.get_weights())
    mask = np.array([[1] * 9, [1] * 4 + [0] * 5], bool)
    output = verbose({"token_ids": tokens(2, 9), "padding_mask": mask})
    plain = encoder({"token_ids": tokens(2, 9), "padding_mask": mask})
    assert set(plain) == {"sequence_output", "pooled_output"}
    assert [h.shape for h in output["hidden_states"]] == [(2, 9, 24)] * 3
    np.testing.assert_array_equal(output["hidden_states"][-1], plain["sequence_output"])
    assert [a.shape for a in output["attention_scores"]] == [(2, 3, 9, 9)] * 2
    for scores in output["attention_scores"]:
        np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, atol=1e-6)
        assert (np.asarray(scores)[1, :, :, 4:] == 0).all()


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
    with pytest.raises(ConfigError, match="sequences of 17 tokens .* max_positions=16"):
        encoder({"token_ids": tokens(1, 17)})
    with pytest.raises(DataError, match="no input 'segment_id'; did you mean 'segment_ids'"):
        encoder({"token_ids": tokens(1, 4), "segment_id": tokens(1, 4)})
    with pytest.raises(DataError, match=r"at least 'token_ids', got \['padding_mask'\]"):
        encoder({"padding_mask": np.ones((1, 4), bool)})
    with pytest.raises(DataError, match="got ndarray"):
        encoder(tokens(1, 4))


def test_lists_and_arrays_beside_tensors_are_inputs_too():
    encoder = BertEncoder(SMALL)
    ids, mask = [[1, 2, 3]], np.array([[True, True, False]])
    expected = encoder({"token_ids": np.array(ids), "padding_mask": mask})["sequence_output"]
    for given in (ids, keras.ops.convert_to_tensor(ids)):
        np.testing.assert_array_equal(encoder({"token_ids": given, "padding_mask": mask})["sequence_output"], expected)
    with pytest.raises(DataError, match="2 dimensions"):
        encoder({"token_ids": [1, 2, 3]})


def test_masks_and_ids_are_as_long_as_the_tokens(encoder):
    shapes = {"padding_mask": (2, 5), "segment_ids": (2, 1), "sequence_ids": (3, 4), "position_ids": (2, 5)}
    for name, shape in shapes.items():
        message = rf"'{name}' has the shape .* and 'token_ids' \(2, 4\); give one value for each"
        with pytest.raises(DataError, match=message):
            encoder({"token_ids": tokens(2, 4), name: np.ones(shape, bool if name == "padding_mask" else "int32")})


def test_ids_that_are_no_tensor(encoder):
    for ids in ([[1, 2, 3], [4]], "a text", 5, [["a text"]]):
        with pytest.raises(DataError, match="'token_ids' must be numbers: a tensor, an array or lists of one length;"):
            encoder({"token_ids": ids})


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
