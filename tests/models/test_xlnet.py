import keras
import numpy as np
import pytest
import tensorflow as tf
from numeric import gradients
from small_models import SIZES, tokens

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import XLNetConfig, XLNetEncoder
from bert_tf.objectives import MaskedLM

SMALL = XLNetConfig(**SIZES)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return XLNetEncoder(SMALL, dtype="float32")


def test_the_pooled_output_is_that_of_the_last_real_token(encoder):
    ids, real = tokens(3, 7), np.arange(7) < np.array([[4], [7], [1]])
    output = encoder({"token_ids": ids, "padding_mask": real})
    last = np.asarray(output["sequence_output"])[[0, 1, 2], [3, 6, 0]]
    dense = encoder.get_layer("pooler").dense
    expected = np.tanh(last @ np.asarray(dense.kernel) + np.asarray(dense.bias))
    np.testing.assert_allclose(output["pooled_output"], expected, atol=1e-5)


def test_segments_matter_only_as_same_or_different(encoder):
    ids = tokens(1, 6)
    outputs = [
        np.asarray(encoder({"token_ids": ids, "segment_ids": np.array([s], "int32")})["sequence_output"])
        for s in ([0, 0, 1, 1, 1, 2], [7, 7, 3, 3, 3, 0], [0, 0, 1, 1, 1, 1])
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)
    assert np.abs(outputs[0] - outputs[2]).max() > 0.01


def test_memory_of_everything_equals_one_pass_where_nothing_looks_ahead(encoder):
    """In the natural order, a text in three pieces with memory is the text in one piece."""
    ids, order = tokens(2, 12), np.tile(np.arange(12, dtype="int32"), (2, 1))
    whole = encoder.encode({"token_ids": ids}, permutation_order=order)
    remembering = XLNetEncoder(SMALL, memory_length=12, dtype="float32")
    remembering.set_weights(encoder.get_weights())
    memory, update = None, remembering.get_layer("memory_update")
    for start, end in ((0, 3), (3, 8), (8, 12)):
        piece = {"token_ids": ids[:, start:end]}
        out = encoder.encode(piece, memory=memory, permutation_order=order[:, start:end])
        np.testing.assert_allclose(out["sequence_output"], whole["sequence_output"][:, start:end], atol=1e-5)
        # The functional model takes and returns the same memory, whatever the order.
        functional = remembering(piece if memory is None else {**piece, "memory": memory})
        memory = update(out["hidden_states"][:-1], memory=memory)
        assert functional["memory"].shape == memory.shape == (2, 2, end, 24)
    np.testing.assert_allclose(memory[:, 0], whole["hidden_states"][0], atol=1e-6)


def test_memory_is_cut_at_its_length_and_has_no_gradient(encoder):
    remembering = XLNetEncoder(SMALL, memory_length=7, reuse_length=4, dtype="float32")
    remembering.set_weights(encoder.get_weights())
    first, second = tokens(2, 6), tokens(2, 5, seed=1)
    table = remembering.embedding_table
    one = remembering({"token_ids": first})["memory"]
    np.testing.assert_array_equal(one[:, 0], np.asarray(table)[first[:, :4]])
    two = remembering({"token_ids": second, "memory": one})["memory"]
    np.testing.assert_array_equal(two[:, 0], np.asarray(table)[np.concatenate([first[:, 1:4], second[:, :4]], 1)])
    with tf.GradientTape() as tape:
        memory = remembering({"token_ids": first})["memory"]
        out = remembering({"token_ids": second, "memory": memory})["sequence_output"]
        loss = tf.reduce_sum(out * tf.cos(tf.range(24.0)))
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
    assert set(np.flatnonzero(np.abs(gradient).sum(1))) == set(second.ravel())
    changed = remembering({"token_ids": second, "memory": memory * 2})["sequence_output"]
    assert np.abs(np.asarray(changed) - np.asarray(out)).max() > 0.01


def test_a_backward_row_is_the_row_read_from_its_end(encoder):
    """Without memory and special tokens, the vectors of a text do not depend on how it is written."""
    ids = tokens(2, 8)
    forward = encoder.encode({"token_ids": ids})["sequence_output"]
    turned = np.stack([ids[0], ids[1][::-1]])
    out = encoder.encode({"token_ids": turned}, backward=np.array([False, True]))["sequence_output"]
    np.testing.assert_allclose(out[0], forward[0], atol=1e-5)
    np.testing.assert_allclose(np.asarray(out[1])[::-1], forward[1], atol=1e-5)


def test_distances_are_clamped():
    config = XLNetConfig(**{**vars(SMALL), "clamp_length": 3, "num_layers": 1})
    encoder = XLNetEncoder(config, pooler=False, dtype="float32")
    ids = np.array([[9, 9, 9, 9, 9, 20, 21]], "int32")
    swapped = np.array([[9, 9, 9, 9, 9, 21, 20]], "int32")
    outputs = [np.asarray(encoder({"token_ids": x})["sequence_output"])[0] for x in (ids, swapped)]
    # From afar their order is not seen; from within three tokens it is.
    np.testing.assert_allclose(outputs[0][:3], outputs[1][:3], atol=1e-5)
    assert np.abs(outputs[0][3] - outputs[1][3]).max() > 1e-3


def test_no_limit_of_length(encoder):
    assert encoder({"token_ids": tokens(1, 700)})["pooled_output"].shape == (1, 24)


def test_traces_with_memory_of_unknown_shapes(encoder):
    remembering = XLNetEncoder(SMALL, memory_length=5, dtype="float32")
    remembering.set_weights(encoder.get_weights())
    signature = [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, 2, None, 24])]

    def call(ids, memory):
        return remembering({"token_ids": ids, "memory": memory})

    function = tf.function(call, input_signature=signature)
    for length, size in ((4, 3), (9, 1)):
        memory = np.random.default_rng(0).normal(size=(2, 2, size, 24)).astype("float32")
        out = function(tokens(2, length), memory)
        expected = remembering({"token_ids": tokens(2, length), "memory": memory})
        for name in expected:
            np.testing.assert_allclose(out[name], expected[name], atol=1e-5)


def test_masked_lm_trains_the_content_stream_alone(encoder):
    model = MaskedLM(encoder)
    features = {
        "token_ids": tokens(2, 8),
        "mask_positions": np.array([[1, 5], [0, 3]], "int32"),
        "mask_ids": tokens(2, 2, seed=4),
        "mask_weights": np.ones((2, 2), "float32"),
    }
    found = gradients(model, lambda: model.loss_sums(features, training=True)[0]["masked_lm"])
    unreached = [path for path, gradient in found.items() if gradient is None and not path.startswith("pooler")]
    assert unreached == ["embeddings/query_vector"]


def test_errors(encoder):
    with pytest.raises(DataError, match="no input 'memory'"):
        encoder({"token_ids": tokens(1, 4), "memory": np.zeros((1, 2, 3, 24))})
    remembering = XLNetEncoder(SMALL, memory_length=3)
    with pytest.raises(DataError, match="would belong to all texts in it"):
        given = {"token_ids": tokens(1, 4), "sequence_ids": np.ones((1, 4), "int32")}
        remembering(given | {"memory": np.zeros((1, 2, 3, 24), "float32")})
    sizes = {"vocabulary_size": 50, "num_layers": 1, "intermediate_size": 40}
    with pytest.raises(ConfigError, match="hidden_size=15 must be even"):
        XLNetConfig(**sizes, hidden_size=15, num_heads=3)
    with pytest.raises(ConfigError, match="hidden_size=24 is not a multiple of num_heads=5"):
        XLNetConfig(**sizes, hidden_size=24, num_heads=5)
    with pytest.raises(ConfigError, match="'clamp_length' is -1; it must be at least 1"):
        XLNetConfig(**sizes, hidden_size=24, num_heads=3, clamp_length=-1)
