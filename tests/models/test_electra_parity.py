"""Our ELECTRA against Hugging Face's, run in float64: see tests/golden/electra.py."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.models.electra import HF_WEIGHTS, ElectraConfig, ElectraEncoder, make_generator
from bert_tf.models.weights import load_weights
from bert_tf.objectives import MaskedLM, ReplacedTokenDetection, replaced_token_detection

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu_erf"}


@pytest.fixture(scope="module", params=["factorized", "wide_tables"])
def golden(request):
    with np.load(FIXTURES / f"electra_{request.param}.npz") as file:
        return dict(file)


def config(golden, part):
    theirs = json.loads(str(golden["settings"]))[part]
    return ElectraConfig(
        vocabulary_size=theirs["vocab_size"],
        embedding_size=theirs["embedding_size"],
        hidden_size=theirs["hidden_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        intermediate_size=theirs["intermediate_size"],
        max_positions=theirs["max_position_embeddings"],
        num_segments=theirs["type_vocab_size"],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        layer_norm_epsilon=theirs["layer_norm_eps"],
    )


def part(golden, prefix):
    return {k.removeprefix(prefix): v for k, v in golden.items() if k.startswith(prefix)}


def published(golden, name):
    """The arrays of a checkpoint of the generator or the discriminator alone."""
    shared = {k: v for k, v in part(golden, "discriminator/").items() if ".embeddings." in k}
    return shared | part(golden, f"{name}/")


def theirs(path):
    """(part, published name, whether transposed) of one of our variables in the joint model."""
    name, transposed = HF_WEIGHTS.source(path.removeprefix("generator/"))
    return "generator" if path.startswith("generator/") else "discriminator", name, transposed


@pytest.fixture(scope="module")
def joint(golden):
    discriminator = ElectraEncoder(config(golden, "discriminator"), pooler=False, dtype="float32")
    model = ReplacedTokenDetection(discriminator, make_generator(discriminator, config(golden, "generator")))
    for variable in model.weights:
        owner, name, transposed = theirs(variable.path)
        value = golden[f"{owner}/{name}"]
        variable.assign(value.T if transposed else value)
    assert len(model.weights) == len(part(golden, "generator/")) + len(part(golden, "discriminator/"))
    return model


@pytest.fixture()
def fixed_samples(golden, monkeypatch):
    samples = tf.constant(golden["samples"].astype("int32"))
    monkeypatch.setattr(replaced_token_detection, "sample_tokens", lambda logits, bits: samples)


def inputs(golden, token_ids="token_ids"):
    result = {"token_ids": golden[token_ids].astype("int32"), "padding_mask": golden["padding_mask"]}
    return result | {"segment_ids": golden["segment_ids"].astype("int32")}


def features(golden):
    result = {name: golden[name].astype("int32") for name in ("mask_positions", "mask_ids")}
    result["sampling_bits"] = np.zeros(golden["mask_ids"].shape, "int32")
    return inputs(golden) | result | {"mask_weights": golden["mask_weights"]}


def relative_error(ours, theirs):
    return np.max(np.abs(np.asarray(ours, "float64") - theirs)) / np.max(np.abs(theirs))


@pytest.mark.parametrize("name, read", [("discriminator", "read"), ("generator", "token_ids")])
def test_every_hidden_state(golden, name, read):
    encoder = ElectraEncoder(config(golden, name), output_hidden_states=True, dtype="float32")
    load_weights(encoder, published(golden, name), HF_WEIGHTS, partly=True)
    out = encoder(inputs(golden, read))
    real, states = golden["padding_mask"], golden[f"{name}_states"]
    assert len(out["hidden_states"]) == len(states)
    for ours, expected in zip(out["hidden_states"], states):
        assert relative_error(np.asarray(ours)[real], expected[real]) < 1e-5
    # google-research/electra: the pooled output is the first token's vector.
    np.testing.assert_array_equal(out["pooled_output"], out["sequence_output"][:, 0])


def test_the_published_parts_alone(golden):
    generator = MaskedLM(ElectraEncoder(config(golden, "generator"), dtype="float32"))
    load_weights(generator, published(golden, "generator"), HF_WEIGHTS)
    logits = generator(features(golden))["masked_lm_logits"]
    assert relative_error(logits, golden["masked_lm_logits"]) < 1e-5
    detector = ReplacedTokenDetection(ElectraEncoder(config(golden, "discriminator"), dtype="float32"))
    load_weights(detector, published(golden, "discriminator"), HF_WEIGHTS)
    real = golden["padding_mask"]
    logits = np.asarray(detector(inputs(golden, "read"))["replaced_logits"])
    assert relative_error(logits[real], golden["replaced_logits"][real]) < 1e-5


def test_the_joint_model(golden, joint, fixed_samples):
    out, real = joint(features(golden)), golden["padding_mask"]
    np.testing.assert_array_equal(out["token_ids"], golden["read"])
    assert relative_error(out["masked_lm_logits"], golden["masked_lm_logits"]) < 1e-5
    logits = np.asarray(out["replaced_logits"])
    assert relative_error(logits[real], golden["replaced_logits"][real]) < 1e-5
    losses, metrics = joint.loss_sums(features(golden), training=False)
    weights = joint.loss_weights(features(golden))
    for name in ("masked_lm", "discriminator"):
        mean = float(losses[name]) / float(weights[name])
        assert mean == pytest.approx(float(golden[f"{name}_loss"]), rel=1e-5)
    # One sample at least is the original: it is not a replaced token.
    assert float(metrics["sampled_accuracy"][0]) > 0
    assert [float(x) for x in metrics["replaced_share"]] == [golden["replaced"].sum(), real.sum()]


def test_gradients(golden, joint, fixed_samples):
    batch = features(golden)
    with tf.GradientTape() as tape:
        losses, _ = joint.loss_sums(batch, training=False)
        weights = joint.loss_weights(batch)
        total = sum(joint.loss_coefficients.get(k, 1) * losses[k] / weights[k] for k in losses)
    gradients = tape.gradient(total, [v.value for v in joint.trainable_variables])
    ours = {}
    for variable, gradient in zip(joint.trainable_variables, gradients):
        owner, name, transposed = theirs(variable.path)
        gradient = tf.convert_to_tensor(gradient).numpy()
        ours[f"{owner}/{name}"] = gradient.T if transposed else gradient
    expected = part(golden, "gradients/")
    assert len(expected) == 14
    for name, gradient in expected.items():
        assert relative_error(ours[name], gradient) < 1e-5, name
