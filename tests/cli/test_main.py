"""What `bert-tf` checks before a command is imported."""

import importlib.util

import pytest
from typed_command import error_of


@pytest.mark.parametrize("backend", ["torch", "jaxx"])
def test_a_backend_on_which_nothing_trains_is_refused(backend, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    error = error_of("pretrain --shards none --output none")
    assert error == f"bert-tf pretrain: KERAS_BACKEND is {backend}; bert-tf pretrain trains on tensorflow or jax\n"


def test_jax_is_missed_before_keras_looks_for_it(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'bert_tf[jax]', or unset KERAS_BACKEND" in error_of("pretrain --shards none --output none")
