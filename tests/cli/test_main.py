"""What `bert-tf` checks before a command is imported."""

import importlib.util
import os

import pytest
from typed_command import error_of

from bert_tf.cli import pretrain
from bert_tf.errors import WorkerLostError


@pytest.mark.parametrize("backend", ["torch", "jaxx"])
def test_a_backend_on_which_nothing_trains_is_refused(backend, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    error = error_of("pretrain --shards none --output none")
    assert error == f"bert-tf pretrain: KERAS_BACKEND is {backend}; bert-tf pretrain trains on tensorflow or jax\n"


def test_jax_is_missed_before_keras_looks_for_it(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'bert_tf[jax]', or unset KERAS_BACKEND" in error_of("pretrain --shards none --output none")


@pytest.mark.parametrize("backend, ends", [("jax", [1]), ("tensorflow", [])])
def test_a_command_on_jax_does_not_wait_for_a_lost_worker(backend, ends, monkeypatch):
    """JAX would, when the interpreter ends, and abort then."""

    def run(options):
        raise WorkerLostError("another worker ended")

    statuses = []
    monkeypatch.setenv("KERAS_BACKEND", backend)
    monkeypatch.setattr(pretrain, "run", run)
    monkeypatch.setattr(os, "_exit", statuses.append)
    assert error_of("pretrain --shards none --output none") == "bert-tf pretrain: another worker ended\n"
    assert statuses == ends
