"""ELECTRA against Hugging Face's, run in float64 (see tests/golden/electra.py), its generators and initial values."""

import numpy as np
import pytest
import tensorflow as tf
from model_goldens import assert_states, integers, load, mean_loss, part
from numeric import gradients, relative_error

from bert_tf.models import preset
from bert_tf.models.electra.checkpoints import HF_CONFIG, HF_WEIGHTS
from bert_tf.models.electra.config import ElectraConfig, generator_config
from bert_tf.models.electra.model import ElectraEncoder, make_generator
from bert_tf.models.weights import load_weights
from bert_tf.objectives import ReplacedTokenDetection, replaced_token_detection


@pytest.fixture(scope="module", params=["factorized", "wide_tables"])
def golden(request):
    arrays, settings = load(f"electra_{request.param}")
    return arrays | {"settings": settings}


def config(golden, part):
    return ElectraConfig(**HF_CONFIG.read(golden["settings"][part], "config.json"))


def published(golden, name):
    """The arrays of a checkpoint of the generator or the discriminator alone."""
    shared = {k: v for k, v in part(golden, "discriminator/").items() if ".embeddings." in k}
    return shared | part(golden, f"{name}/")


def published_name(path):
    """(part, published name, whether transposed) of one of our variables in the joint model."""
    name, transposed = HF_WEIGHTS.source(path.removeprefix("generator/"))
    return "generator" if path.startswith("generator/") else "discriminator", name, transposed


@pytest.fixture(scope="module")
def joint(golden):
    discriminator = ElectraEncoder(config(golden, "discriminator"), pooler=False, dtype="float32")
    model = ReplacedTokenDetection(discriminator, make_generator(discriminator, config(golden, "generator")))
    for variable in model.weights:
        owner, name, transposed = published_name(variable.path)
        value = golden[f"{owner}/{name}"]
        variable.assign(value.T if transposed else value)
    assert len(model.weights) == len(part(golden, "generator/")) + len(part(golden, "discriminator/"))
    return model


@pytest.fixture()
def fixed_samples(golden, monkeypatch):
    samples = tf.constant(golden["samples"].astype("int32"))
    monkeypatch.setattr(replaced_token_detection, "draw_from_logits", lambda logits, bits: samples)


def inputs(golden, token_ids="token_ids"):
    result = {"token_ids": golden[token_ids].astype("int32"), "padding_mask": golden["padding_mask"]}
    return result | integers(golden, "segment_ids")


def features(golden):
    result = integers(golden, "mask_positions", "mask_ids")
    result["sampling_bits"] = np.zeros(golden["mask_ids"].shape, "int32")
    return inputs(golden) | result | {"mask_weights": golden["mask_weights"]}


@pytest.mark.parametrize("name, read", [("discriminator", "read"), ("generator", "token_ids")])
def test_every_hidden_state(golden, name, read):
    encoder = ElectraEncoder(config(golden, name), output_hidden_states=True, dtype="float32")
    load_weights(encoder, published(golden, name), HF_WEIGHTS, partly=True)
    out = encoder(inputs(golden, read))
    assert_states(out["hidden_states"], golden[f"{name}_states"], golden["padding_mask"])
    # google-research/electra: the pooled output is the first token's vector.
    np.testing.assert_array_equal(out["pooled_output"], out["sequence_output"][:, 0])


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
    ours = {}
    for path, gradient in gradients(joint, lambda: mean_loss(joint, batch)).items():
        assert gradient is not None, path
        owner, name, transposed = published_name(path)
        ours[f"{owner}/{name}"] = gradient.T if transposed else gradient
    expected = part(golden, "gradients/")
    assert len(expected) == 14
    for name, gradient in expected.items():
        assert relative_error(ours[name], gradient) < 1e-5, name


def test_the_generators_of_base_and_large_were_released():
    for name, size in (("electra_base", 0.33333), ("electra_large", 0.25)):
        assert generator_config(preset(name), size) == preset(f"{name}_generator")
    # Of a quarter of the width, with one head; the small one that was released is as wide as its discriminator.
    small = generator_config(preset("electra_small"))
    assert (small.hidden_size, small.num_heads, small.intermediate_size, small.embedding_size) == (64, 1, 256, 128)


def test_initial_values_are_those_of_the_original():
    config = ElectraConfig(50, 300, 1, 2, 400, embedding_size=100)
    model = ReplacedTokenDetection(ElectraEncoder(config))
    kernels = {v.path: np.asarray(v) for v in model.weights if v.path.endswith("kernel")}
    for path, fan in (("embedding_projection/kernel", 400), ("discriminator_head/output/kernel", 301)):
        limit = np.sqrt(6 / fan)
        assert 0.9 * limit < np.abs(kernels.pop(path)).max() < limit
    for path, kernel in kernels.items():
        assert np.abs(kernel).max() < 0.0401 and 0.015 < kernel.std() < 0.021, path
