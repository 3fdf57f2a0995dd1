"""Families pretrained by masked LM against Hugging Face's, run in float64: see
tests/golden/masked_lm_families.py."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.models import albert, distilbert, modernbert, roberta
from bert_tf.models.families import build_encoder
from bert_tf.models.weights import export_weights, load_weights
from bert_tf.objectives import MaskedLM

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu_erf", "relu": "relu", "silu": "silu"}


def sizes(theirs):
    return {
        "vocabulary_size": theirs["vocab_size"],
        "hidden_size": theirs["hidden_size"],
        "num_layers": theirs["num_hidden_layers"],
        "num_heads": theirs["num_attention_heads"],
        "intermediate_size": theirs["intermediate_size"],
        "initializer_range": theirs["initializer_range"],
    }


def roberta_config(theirs):
    return roberta.RobertaConfig(
        **sizes(theirs),
        max_positions=theirs["max_position_embeddings"] - theirs["pad_token_id"] - 1,
        padding_id=theirs["pad_token_id"],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        layer_norm_epsilon=theirs["layer_norm_eps"],
    )


def albert_config(theirs):
    return albert.AlbertConfig(
        **sizes(theirs),
        embedding_size=theirs["embedding_size"],
        num_groups=theirs["num_hidden_groups"],
        inner_groups=theirs["inner_group_num"],
        max_positions=theirs["max_position_embeddings"],
        num_segments=theirs["type_vocab_size"],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        layer_norm_epsilon=theirs["layer_norm_eps"],
    )


def distilbert_config(theirs):
    return distilbert.DistilBertConfig(
        vocabulary_size=theirs["vocab_size"],
        hidden_size=theirs["dim"],
        num_layers=theirs["n_layers"],
        num_heads=theirs["n_heads"],
        intermediate_size=theirs["hidden_dim"],
        max_positions=theirs["max_position_embeddings"],
        activation=ACTIVATIONS[theirs["activation"]],
    )


def modernbert_config(theirs):
    return modernbert.ModernBertConfig(
        **sizes(theirs),
        global_attention_every=theirs.get("global_attn_every_n_layers", 3),
        local_attention=theirs["local_attention"],
        global_theta=theirs.get("global_rope_theta", 160_000.0),
        local_theta=theirs.get("local_rope_theta", 10_000.0),
        activation=ACTIVATIONS[theirs["hidden_activation"]],
        layer_norm_epsilon=theirs["norm_eps"],
    )


CASES = {
    "roberta_long": (roberta, roberta_config),
    "roberta_relu": (roberta, roberta_config),
    "albert_groups": (albert, albert_config),
    "albert_one": (albert, albert_config),
    "distilbert_erf": (distilbert, distilbert_config),
    "modernbert_local": (modernbert, modernbert_config),
    "modernbert_silu": (modernbert, modernbert_config),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    family, make_config = CASES[request.param]
    with np.load(FIXTURES / f"{request.param}.npz") as file:
        golden = dict(file)
    config = make_config(json.loads(str(golden["settings"])))
    pair_task = "sop" if "pair_logits" in golden else None
    encoder = build_encoder(
        config, pooler=pair_task is not None, output_hidden_states=True, output_attention_scores=True, dtype="float32"
    )
    model = MaskedLM(encoder, pair_task=pair_task)
    load_weights(model, part(golden, "weights/"), family.HF_WEIGHTS)
    return model, golden, family.HF_WEIGHTS


def part(golden, prefix):
    return {k.removeprefix(prefix): v for k, v in golden.items() if k.startswith(prefix)}


def features(golden):
    names = ("token_ids", "segment_ids", "mask_positions", "mask_ids", "pair_labels")
    result = {name: golden[name].astype("int32") for name in names if name in golden}
    result |= {"padding_mask": golden["padding_mask"], "mask_weights": golden["mask_weights"]}
    return result | {"pair_weights": np.ones(len(golden["token_ids"]), "float32")}


def relative_error(ours, theirs):
    return np.max(np.abs(np.asarray(ours, "float64") - theirs)) / np.max(np.abs(theirs))


def test_every_hidden_state_and_the_attention(case):
    model, golden, _ = case
    inputs = {k: v for k, v in features(golden).items() if k in ("token_ids", "segment_ids", "padding_mask")}
    out = model.backbone(inputs)
    real = golden["padding_mask"]
    assert len(out["hidden_states"]) == len(golden["hidden_states"])
    for ours, theirs in zip(out["hidden_states"], golden["hidden_states"]):
        assert relative_error(np.asarray(ours)[real], theirs[real]) < 1e-5
    np.testing.assert_array_equal(out["hidden_states"][-1], out["sequence_output"])
    ours = np.asarray(out["attention_scores"][-2])[:, :, golden["attention_queries"]]
    assert relative_error(ours, golden["attention"]) < 1e-5


def test_logits_and_loss(case):
    model, golden, _ = case
    outputs = model(features(golden))
    for name in outputs:
        assert relative_error(outputs[name], golden[name]) < 1e-5
    losses, _ = model.loss_sums(features(golden), training=False)
    weights = model.loss_weights(features(golden))
    total = sum(float(losses[name]) / float(weights[name]) for name in losses)
    assert total == pytest.approx(float(golden["loss"]), rel=1e-5)


def test_gradients(case):
    model, golden, weight_map = case
    with tf.GradientTape() as tape:
        losses, _ = model.loss_sums(features(golden), training=False)
        weights = model.loss_weights(features(golden))
        total = sum(losses[name] / weights[name] for name in losses)
    gradients = tape.gradient(total, [v.value for v in model.trainable_variables])
    ours = {v.path: tf.convert_to_tensor(g).numpy() for v, g in zip(model.trainable_variables, gradients)}
    theirs = part(golden, "gradients/")
    assert len(theirs) >= 7
    for name, gradient in theirs.items():
        path, transposed = weight_map.target(name)
        assert relative_error(ours[path].T if transposed else ours[path], gradient) < 1e-5, name


def test_weights_go_back_under_the_same_names(case):
    model, golden, weight_map = case
    theirs = part(golden, "weights/")
    exported = export_weights(model, weight_map)
    for name, value in theirs.items():
        np.testing.assert_array_equal(exported.get(weight_map.copies.get(name, name)), value, err_msg=name)
