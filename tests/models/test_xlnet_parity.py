"""Our XLNet against Hugging Face's, run in float64: see tests/golden/xlnet.py."""

import numpy as np
import pytest
import tensorflow as tf
from model_goldens import assert_exported, assert_gradients, assert_states, integers, load, part
from numeric import relative_error

from bert_tf.layers import SegmentMemory
from bert_tf.models.weights import load_weights
from bert_tf.models.xlnet.checkpoints import HF_CONFIG, HF_WEIGHTS
from bert_tf.models.xlnet.config import XLNetConfig
from bert_tf.models.xlnet.model import XLNetEncoder
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
            {key: inputs[key] for key in ("token_ids", "segment_ids")},
            memory=memory,
            permutation_order=inputs["permutation_order"],
            mask_positions=inputs["mask_positions"],
            backward=backward,
        )
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


def test_gradients(pretraining):
    model, golden, theirs = pretraining
    assert_gradients(model, lambda: run(model, golden, theirs)[1], golden, HF_WEIGHTS, count=16)


def test_weights_go_back_as_they_came(pretraining):
    model, golden, _ = pretraining
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
    assert len(out["hidden_states"]) == len(golden["hidden_states"]) == 3
    for ours, theirs in zip(out["hidden_states"], golden["hidden_states"]):
        assert relative_error(np.asarray(ours)[where], theirs[real]) < 1e-5
    assert relative_error(out["pooled_output"], golden["pooled_output"]) < 1e-5
    if padding == "left":
        ours = np.asarray(out["attention_scores"][-1])[:, :, golden["attention_queries"]]
        assert relative_error(ours, golden["attention"]) < 1e-5


def roll(values, real):
    """Padding from the left to the right."""
    return np.stack([np.roll(row, -np.argmax(mask)) for row, mask in zip(values, real)])
