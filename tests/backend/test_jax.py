"""Encoders and objectives on another Keras backend: the same losses and gradients."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_step import results

ROOT = Path(__file__).parents[2]


def steps_of_jax():
    environment = os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # each program runs twice: compiling it is what takes time
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "one_step.py"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed = json.loads(done.stdout)
    # Pure Keras: nothing of TensorFlow is imported, which machines for JAX do not have.
    assert printed["modules"] == ["jax"]
    return printed["steps"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs the extra: pip install -e '.[jax]'")
def test_every_objective_takes_the_same_step_under_jax():
    ours, theirs = results(), steps_of_jax()
    assert ours.keys() == theirs.keys() and len(ours) == 8
    for name, expected in ours.items():
        assert theirs[name]["loss"] == pytest.approx(expected["loss"], rel=1e-5)
        assert theirs[name]["after"] == pytest.approx(expected["after"], rel=1e-5)
        assert theirs[name]["norms"] == pytest.approx(expected["norms"], rel=1e-4, abs=1e-6)
        assert expected["after"] != expected["loss"]
