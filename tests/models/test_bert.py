import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder

SMALL = BertConfig(
    vocabulary_size=50,
    hidden_size=24,
    num_layers=2,
    num_heads=3,
    intermediate_size=40,
    max_positions=16,
    initializer_range=0.3,
)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return BertEncoder(SMALL, dtype="float32")


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).integers(5, 50, shape).astype("int32")


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


def test_without_pooler():
    encoder = BertEncoder(SMALL, pooler=False)
    assert set(encoder({"token_ids": tokens(1, 4)})) == {"sequence_output"}
    assert not [v.path for v in encoder.weights if "pooler" in v.path]


def test_predict_batched_with_changing_lengths(encoder):
    rows = [tokens(n, seed=n) for n in (4, 7, 5)]
    dataset = tf.data.Dataset.from_generator(
        lambda: ({"token_ids": r, "padding_mask": np.ones(len(r), bool)} for r in rows),
        output_signature={"token_ids": tf.TensorSpec([None], tf.int32), "padding_mask": tf.TensorSpec([None], tf.bool)},
    ).padded_batch(3)
    pooled = encoder.predict(dataset, verbose=0)["pooled_output"]
    for row, ours in zip(rows, pooled):
        np.testing.assert_allclose(encoder({"token_ids": row[None]})["pooled_output"][0], ours, atol=1e-5)


def test_as_a_part_of_a_functional_model(encoder):
    inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
    model = keras.Model(inputs, encoder(inputs)["pooled_output"])
    ids = tokens(2, 9)
    np.testing.assert_array_equal(model({"token_ids": ids}), encoder({"token_ids": ids})["pooled_output"])


def test_embedding_table_is_the_variable_itself(encoder):
    assert encoder.embedding_table.shape == (50, 24)
    assert any(encoder.embedding_table is v for v in encoder.trainable_variables)


def test_input_errors(encoder):
    with pytest.raises(ConfigError, match="sequences of 17 tokens .* max_positions=16"):
        encoder({"token_ids": tokens(1, 17)})
    with pytest.raises(DataError, match="no input 'segment_id'; did you mean 'segment_ids'"):
        encoder({"token_ids": tokens(1, 4), "segment_id": tokens(1, 4)})
    with pytest.raises(DataError, match=r"at least 'token_ids', got \['padding_mask'\]"):
        encoder({"padding_mask": np.ones((1, 4), bool)})
    with pytest.raises(DataError, match="got ndarray"):
        encoder(tokens(1, 4))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_heads": 5}, "hidden_size=24 is not a multiple of num_heads=5"),
        ({"activation": "gelu_tan"}, "did you mean 'gelu_tanh'"),
        ({"num_layers": 0}, "'num_layers' is 0; it must be at least 1 and at most 1,000"),
        ({"hidden_size": 24.5}, "'hidden_size' must be int, got 24.5"),
        ({"dropout": 1.0}, "'dropout' is 1.0; it must be at least 0 and below 1"),
        ({"attention_dropout": "0.1"}, "'attention_dropout' must be float, got '0.1'"),
        ({"layer_norm_epsilon": 0.0}, "'layer_norm_epsilon' is 0.0; it must be above 0"),
    ],
)
def test_config_errors(change, message):
    values = {"vocabulary_size": 50, "hidden_size": 24, "num_layers": 1, "num_heads": 3, "intermediate_size": 40}
    with pytest.raises(ConfigError, match=message):
        BertConfig(**{**values, **change})


def test_lists_and_arrays_beside_tensors_are_inputs_too():
    encoder = BertEncoder(SMALL)
    ids, mask = [[1, 2, 3]], np.array([[True, True, False]])
    expected = encoder({"token_ids": np.array(ids), "padding_mask": mask})["sequence_output"]
    for given in (ids, keras.ops.convert_to_tensor(ids)):
        np.testing.assert_array_equal(encoder({"token_ids": given, "padding_mask": mask})["sequence_output"], expected)
    with pytest.raises(DataError, match="2 dimensions"):
        encoder({"token_ids": [1, 2, 3]})


@pytest.mark.parametrize("name", ["padding_mask", "segment_ids", "sequence_ids", "position_ids"])
@pytest.mark.parametrize("shape", [(2, 5), (2, 1), (3, 4)])
def test_masks_and_ids_are_as_long_as_the_tokens(encoder, name, shape):
    with pytest.raises(
        DataError, match=rf"'{name}' has the shape .* and 'token_ids' \(2, 4\); give one value for each"
    ):
        encoder({"token_ids": tokens(2, 4), name: np.ones(shape, bool if name == "padding_mask" else "int32")})


@pytest.mark.parametrize("ids", [[[1, 2, 3], [4]], "a text", 5, [["a text"]]])
def test_ids_that_are_no_tensor(encoder, ids):
    with pytest.raises(DataError, match="'token_ids' must be numbers: a tensor, an array or lists of one length; pad"):
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
