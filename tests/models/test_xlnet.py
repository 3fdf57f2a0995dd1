"""XLNet against Hugging Face's, run in float64 (see tests/golden/xlnet.py), and its memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_goldens import assert_exported, assert_gradients, assert_states, integers, load, part
from numeric import gradients, relative_error
from small_models import SIZES, tokens

from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import SegmentMemory
from bert_tf.models import XLNetConfig, XLNetEncoder
from bert_tf.models.weights import load_weights
from bert_tf.models.xlnet.checkpoints import HF_CONFIG, HF_WEIGHTS
from bert_tf.objectives import MaskedLM
from bert_tf.objectives.permutation_lm import PermutationLM

OF_THE_SCRIPT = ("batch", "length", "lengths", "bi_data")


def config(settings):
    settings = {key: value for key, value in settings.items() if key not in OF_THE_SCRIPT}
    return XLNetConfig(**HF_CONFIG.read(settings, "config.json"))


@pytest.fixture(scope="module", params=("tanh", "relu_backward"))
def pretraining(request):
    golden, theirs = load(f"xlnet_{request.param}")
    model = PermutationLM(XLNetEncoder(config(theirs), pooler=False, dtype="float32"), segments=1)
    load_weights(model, part(golden, "weights/"), HF_WEIGHTS)
    return model, golden, theirs


def run(model, golden, theirs):
    """The two segments of the text, the second with the memory of the first, and the total loss."""
    remember = SegmentMemory(theirs["mem_len"], theirs.get("reuse_len"))
    batch = theirs["batch"]
    backward = np.arange(batch) >= batch // 2 if theirs.get("bi_data") else None
    memory, total, results = None, 0.0, []
    for number in "01":
        inputs = {k: v.astype("int32") if v.dtype == "int16" else v for k, v in part(golden, f"{number}/").items()}
        result = model.backbone.encode(
            {key: inputs[key] for key in ("token_ids", "segment_ids")}, memory=memory,
            permutation_order=inputs["permutation_order"], mask_positions=inputs["mask_positions"], backward=backward,
        )  # fmt: skip
        result["memory"] = memory = remember(result["hidden_states"][:-1], memory=memory)
        result["logits"] = model.lm_head(result["query_output"], model.backbone.embedding_table)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(inputs["mask_ids"], result["logits"])
        total += tf.reduce_mean(losses)
        results.append((result, inputs))
    return results, total


def test_both_streams_and_the_memory(pretraining):
    model, golden, theirs = pretraining
    results, total = run(model, golden, theirs)
    for ours, expected in results:
        for name in ("hidden_states", "query_hidden_states"):
            assert_states(ours[name], expected[name])
        assert ours["memory"].shape == expected["memory"].shape
        assert relative_error(ours["memory"], expected["memory"]) < 1e-5
        assert relative_error(ours["logits"], expected["logits"]) < 1e-5
    assert float(total) == pytest.approx(sum(float(e["loss"]) for _, e in results), rel=1e-5)


def test_gradients_and_weights_that_go_back(pretraining):
    model, golden, theirs = pretraining
    assert_gradients(model, lambda: run(model, golden, theirs)[1], golden, HF_WEIGHTS, count=16)
    assert set(assert_exported(model, golden, HF_WEIGHTS)) == set(part(golden, "weights/"))


@pytest.mark.parametrize("padding", ["left", "right"])
def test_content_stream_with_padding_on_either_side(padding):
    golden, settings = load("xlnet_erf_padded")
    encoder = XLNetEncoder(config(settings), output_hidden_states=True, output_attention_scores=True, dtype="float32")
    load_weights(encoder, part(golden, "weights/"), HF_WEIGHTS)
    real = golden["padding_mask"]
    inputs = integers(golden, "token_ids", "segment_ids") | {"padding_mask": real}
    if padding == "right":
        inputs = {name: roll(value, real) for name, value in inputs.items()}
    out = encoder(inputs)
    where = inputs["padding_mask"]
    for ours, theirs in zip(out["hidden_states"], golden["hidden_states"], strict=True):
        assert relative_error(np.asarray(ours)[where], theirs[real]) < 1e-5
    assert relative_error(out["pooled_output"], golden["pooled_output"]) < 1e-5
    if padding == "left":
        ours = np.asarray(out["attention_scores"][-1])[:, :, golden["attention_queries"]]
        assert relative_error(ours, golden["attention"]) < 1e-5


def roll(values, real):
    """Padding from the left to the right."""
    return np.stack([np.roll(row, -np.argmax(mask)) for row, mask in zip(values, real)])


SMALL = XLNetConfig(**SIZES)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return XLNetEncoder(SMALL, dtype="float32")


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
    texts = np.array([[9, 9, 9, 9, 9, 20, 21], [9, 9, 9, 9, 9, 21, 20]], "int32")
    outputs = np.asarray(encoder({"token_ids": texts})["sequence_output"])
    # From afar their order is not seen; from within three tokens it is.
    np.testing.assert_allclose(outputs[0][:3], outputs[1][:3], atol=1e-5)
    assert np.abs(outputs[0][3] - outputs[1][3]).max() > 1e-3


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
    features = {"token_ids": tokens(2, 8), "mask_positions": np.array([[1, 5], [0, 3]], "int32")}
    features |= {"mask_ids": tokens(2, 2, seed=4), "mask_weights": np.ones((2, 2), "float32")}
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
