"""LoRA from Python: what is trained, saved and merged. Runs with LoRA are in tests/training/test_freezing.py."""

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.models import BertConfig, BertEncoder, GPT2Config, GPT2Decoder, build_backbone, enable_lora, merge_lora

INPUTS = {"token_ids": np.array([[5, 6, 7], [9, 2, 4]], "int32")}


@pytest.fixture(params=[(BertConfig, BertEncoder, ["query", "value"]), (GPT2Config, GPT2Decoder, ["intermediate"])])
def adapted(request):
    """A model with factors that are not zeros, and are all that is trained."""
    config, model, names = request.param
    keras.utils.set_random_seed(0)
    model = model(config(50, 16, num_layers=2, num_heads=2, intermediate_size=32))
    before = np.asarray(model(INPUTS)["sequence_output"])
    enable_lora(model, rank=2, alpha=3.0, names=names)
    np.testing.assert_array_equal(model(INPUTS)["sequence_output"], before)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    assert np.abs(np.asarray(model(INPUTS)["sequence_output"]) - before).max() > 0.1
    assert {v.path.split("/")[-2] for v in model.trainable_variables} == set(names)
    return model


def test_merging_changes_no_answer(adapted):
    model = adapted
    expected, count = np.asarray(model(INPUTS)["sequence_output"]), len(model.weights)
    factors = len(model.trainable_variables)
    merge_lora(model)
    np.testing.assert_allclose(model(INPUTS)["sequence_output"], expected, atol=1e-5)
    assert len(model.weights) == len(model.trainable_variables) == count - factors
    enable_lora(model, rank=2)  # it is a model like any other


def test_files_hold_the_merged_kernels(adapted, tmp_path):
    model = adapted
    expected = np.asarray(model(INPUTS)["sequence_output"])
    bert_tf.save(model, None, tmp_path / "hf")
    model.save(tmp_path / "model.keras")
    assert len(model.trainable_variables) > 0  # saving merges in the file alone
    source = open_source(tmp_path / "hf")
    opened = build_backbone(source.config)
    source.fill(opened, fresh=("pooler",))
    for loaded in (opened, keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_allclose(loaded(INPUTS)["sequence_output"], expected, atol=1e-5)
        assert not [v.path for v in loaded.weights if "lora" in v.path]
