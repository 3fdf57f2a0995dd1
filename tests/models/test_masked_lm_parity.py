"""Families pretrained by masked LM against Hugging Face's, run in float64: see tests/golden/bert.py and
tests/golden/masked_lm_families.py."""

import numpy as np
import pytest
from model_goldens import assert_exported, assert_gradients, assert_states, integers, load, mean_loss, part
from numeric import relative_error

from bert_tf.models.families import FAMILIES, build_backbone
from bert_tf.models.weights import load_weights
from bert_tf.objectives import MaskedLM


@pytest.fixture(scope="module", params=[
    "bert_tanh_pairs", "bert_erf_three_segments", "bert_relu_long", "roberta_long", "roberta_relu", "albert_groups",
    "albert_one", "distilbert_erf", "modernbert_local", "modernbert_silu",
])  # fmt: skip
def case(request):
    """(model, golden arrays, `WeightMap`, whether it is a BERT)."""
    family = FAMILIES[request.param.split("_")[0]]
    maps, (golden, settings) = family.maps("hf"), load(request.param)
    pair_task = "nsp" if family.name == "bert" else "sop" if "pair_logits" in golden else None
    encoder = build_backbone(
        family.config(**maps.config.read(settings, "config.json")),
        pooler=pair_task is not None, output_hidden_states=True, output_attention_scores=True, dtype="float32",
    )  # fmt: skip
    model = MaskedLM(encoder, pair_task=pair_task)
    load_weights(model, part(golden, "weights/"), maps.weights)
    return model, golden, maps.weights, family.name == "bert"


def features(golden):
    result = integers(golden, "token_ids", "segment_ids", "mask_positions", "mask_ids", "pair_labels")
    result |= {"padding_mask": golden["padding_mask"], "mask_weights": golden["mask_weights"]}
    return result | {"pair_weights": np.ones(len(golden["token_ids"]), "float32")}


def test_every_hidden_state_and_the_attention(case):
    model, golden, _, is_bert = case
    inputs = {k: v for k, v in features(golden).items() if k in ("token_ids", "segment_ids", "padding_mask")}
    out = model.backbone(inputs)
    assert_states(out["hidden_states"], golden["hidden_states"], golden["padding_mask"])
    np.testing.assert_array_equal(out["hidden_states"][-1], out["sequence_output"])
    ours = out["attention_scores"][-1 if is_bert else -2]  # the layer that the script chose
    ours = np.asarray(ours)[:, :, golden["attention_queries"]]
    assert relative_error(ours, golden["attention"]) < 1e-5


def test_logits_and_loss(case):
    model, golden, *_ = case
    outputs = model(features(golden))
    for name in outputs:
        assert relative_error(outputs[name], golden[name]) < 1e-5
    assert float(mean_loss(model, features(golden))) == pytest.approx(float(golden["loss"]), rel=1e-5)


def test_gradients_and_weights_that_go_back_under_the_same_names(case):
    model, golden, names, is_bert = case
    assert_gradients(model, lambda: mean_loss(model, features(golden)), golden, names, count=13 if is_bert else 7)
    assert_exported(model, golden, names)
