"""Our BERT against Hugging Face's, run in float64: see tests/golden/bert.py."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.bert import HF_WEIGHTS
from bert_tf.models.weights import load_weights
from bert_tf.objectives import MaskedLM

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu_erf", "relu": "relu"}
CASES = ("tanh_pairs", "erf_three_segments", "relu_long")


@pytest.fixture(scope="module", params=CASES)
def case(request):
    with np.load(FIXTURES / f"bert_{request.param}.npz") as file:
        golden = dict(file)
    theirs = json.loads(str(golden["settings"]))
    config = BertConfig(
        vocabulary_size=theirs["vocab_size"],
        hidden_size=theirs["hidden_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        intermediate_size=theirs["intermediate_size"],
        max_positions=theirs["max_position_embeddings"],
        num_segments=theirs["type_vocab_size"],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        layer_norm_epsilon=theirs["layer_norm_eps"],
    )
    encoder = BertEncoder(config, output_hidden_states=True, output_attention_scores=True, dtype="float32")
    model = MaskedLM(encoder, pair_task="nsp")
    load_weights(model, part(golden, "weights/"), HF_WEIGHTS)
    return model, golden


def part(golden, prefix):
    return {k.removeprefix(prefix): v for k, v in golden.items() if k.startswith(prefix)}


def features(golden):
    names = ("token_ids", "segment_ids", "mask_positions", "mask_ids", "pair_labels")
    result = {name: golden[name].astype("int32") for name in names}
    result |= {"padding_mask": golden["padding_mask"], "mask_weights": golden["mask_weights"]}
    return result | {"pair_weights": np.ones(len(golden["token_ids"]), "float32")}


def relative_error(ours, theirs):
    return np.max(np.abs(np.asarray(ours, "float64") - theirs)) / np.max(np.abs(theirs))


def test_every_hidden_state_and_the_attention(case):
    model, golden = case
    inputs = {k: v for k, v in features(golden).items() if k in ("token_ids", "segment_ids", "padding_mask")}
    out = model.backbone(inputs)
    real = golden["padding_mask"]
    assert len(out["hidden_states"]) == len(golden["hidden_states"])
    for ours, theirs in zip(out["hidden_states"], golden["hidden_states"]):
        assert relative_error(np.asarray(ours)[real], theirs[real]) < 1e-5
    ours = np.asarray(out["attention_scores"][-1])[:, :, golden["attention_queries"]]
    assert relative_error(ours, golden["attention"]) < 1e-5


def test_logits_and_loss(case):
    model, golden = case
    outputs = model(features(golden))
    for name in ("masked_lm_logits", "pair_logits"):
        assert relative_error(outputs[name], golden[name]) < 1e-5
    losses, _ = model.loss_sums(features(golden), training=False)
    weights = model.loss_weights(features(golden))
    total = sum(float(losses[name]) / float(weights[name]) for name in losses)
    assert total == pytest.approx(float(golden["loss"]), rel=1e-5)


def test_gradients(case):
    model, golden = case
    with tf.GradientTape() as tape:
        losses, _ = model.loss_sums(features(golden), training=False)
        weights = model.loss_weights(features(golden))
        total = sum(losses[name] / weights[name] for name in losses)
    gradients = tape.gradient(total, [v.value for v in model.trainable_variables])
    ours = {v.path: tf.convert_to_tensor(g).numpy() for v, g in zip(model.trainable_variables, gradients)}
    theirs = part(golden, "gradients/")
    assert len(theirs) == 13
    for name, gradient in theirs.items():
        path, transposed = HF_WEIGHTS.target(name)
        assert relative_error(ours[path].T if transposed else ours[path], gradient) < 1e-5, name
