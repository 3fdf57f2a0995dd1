"""The arrays of tests/fixtures/models, which others' code computed in float64 (see tests/golden), against ours."""

import json
from pathlib import Path

import numpy as np
from numeric import gradients, relative_error

from bert_tf.models.weights import export_weights

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"


def load(name):
    """(arrays, the configuration of the model that they are of)."""
    with np.load(FIXTURES / f"{name}.npz") as file:
        golden = dict(file)
    return golden, json.loads(str(golden["config" if "config" in golden else "settings"]))


def part(golden, prefix):
    return {k.removeprefix(prefix): v for k, v in golden.items() if k.startswith(prefix)}


def integers(golden, *names):
    """Those of the arrays of ids that there are."""
    return {name: golden[name].astype("int32") for name in names if name in golden}


def assert_states(found, golden, real=slice(None)):
    """All hidden states, where `real` is True."""
    assert len(found) == len(golden)
    for ours, theirs in zip(found, golden):
        assert relative_error(np.asarray(ours)[real], theirs[real]) < 1e-5


def assert_gradients(model, loss, golden, weight_map, count, tolerance=1e-5, zeros="no name"):
    """Of `loss()`; `golden` has `count` of them or more. Those whose names end with `zeros` are rounding errors."""
    found = gradients(model, loss)
    assert all(gradient is not None for gradient in found.values())
    ours, theirs = export_weights(found, weight_map), part(golden, "gradients/")
    assert len(theirs) >= count
    for name, gradient in theirs.items():
        assert name.endswith(zeros) or relative_error(ours[name], gradient) < tolerance, name


def assert_exported(model, golden, weight_map, tolerance=0.0):
    """The weights go back under the names that they came from; returns them."""
    exported = export_weights(model, weight_map)
    for name, value in part(golden, "weights/").items():
        ours = exported[name if name in exported else weight_map.copies[name]]
        np.testing.assert_allclose(ours, value, rtol=0, atol=tolerance, err_msg=name)
    return exported


def mean_loss(model, features):
    """The sum over losses of sum / weight, without dropout."""
    losses, _ = model.loss_sums(features, training=False)
    weights = model.loss_weights(features)
    return sum(model.loss_coefficients.get(name, 1) * losses[name] / weights[name] for name in losses)
