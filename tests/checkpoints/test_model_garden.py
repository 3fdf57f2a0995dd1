"""Tiny BERTs that the Model Garden saved, see tests/golden/model_garden.py."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numeric import relative_error
from published_models import assert_same_weights, write_tensorflow1

import bert_tf
from bert_tf.errors import DataError
from bert_tf.models.weights import by_path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"


def golden(name):
    with np.load(FIXTURES / name / "expected.npz") as file:
        arrays = dict(file)
    return arrays, {key: arrays[key] for key in ("token_ids", "padding_mask", "segment_ids")}


@pytest.mark.parametrize("name", ["garden_encoder", "garden_pretrainer"])
def test_the_encoder_and_the_masked_lm_head(name):
    expected, inputs = golden(name)
    loaded = bert_tf.load(FIXTURES / name)
    assert loaded.report.fresh == ()
    if name == "garden_pretrainer":
        assert loaded.report.unused == ("next_sentence..pooler_dense/bias", "next_sentence..pooler_dense/kernel")
    out, real = loaded.encoder(inputs), expected["padding_mask"]
    assert relative_error(np.asarray(out["sequence_output"])[real], expected["sequence_output"][real]) < 1e-5
    if "pooled_output" in expected:
        assert loaded.report.unused == ()
        assert relative_error(out["pooled_output"], expected["pooled_output"]) < 1e-5
    if "logits" in expected:
        positions = np.tile(np.arange(7, dtype="int32"), (2, 1))
        logits = np.asarray(loaded.objective(inputs | {"mask_positions": positions})["masked_lm_logits"])
        assert relative_error(logits[real], expected["logits"][real]) < 1e-5


def test_what_is_not_understood_is_named(tmp_path):
    folder = tmp_path / "more"
    shutil.copytree(FIXTURES / "garden_encoder", folder)
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def write(more):
        write_tensorflow1(folder / "bert_model.ckpt", tensors | more)

    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    write({f"optimizer/iter{suffix}": np.array(3), f"save_counter{suffix}": np.array(1)})
    assert bert_tf.load(folder).report.unused == ()
    write({f"model/_adapter/kernel{suffix}": np.zeros(2, "float32")})
    with pytest.raises(DataError, match="'model/_adapter/kernel' has no place in this model"):
        _ = bert_tf.load(folder).backbone
    (folder / "bert_config.json").rename(folder / "albert_config.json")
    with pytest.raises(DataError, match="saved by TensorFlow 2; of the Model Garden only bert can be read"):
        _ = bert_tf.load(folder).backbone


@pytest.mark.parametrize("name", ["garden_encoder", "garden_pretrainer"])
def test_what_is_written_holds_what_the_garden_wrote(tmp_path, name):
    loaded = bert_tf.load(FIXTURES / name)
    loaded.save(tmp_path / "run", format="run")
    bert_tf.load(tmp_path / "run").save(tmp_path / "again", format="garden")
    again = bert_tf.load(tmp_path / "again")
    assert again.source.format == "garden" and again.config == loaded.config
    assert_same_weights(loaded.objective if "masked_lm_head" in loaded.source.parts else loaded.backbone, again.model)
    kernels = []
    for path in (tmp_path / "again", FIXTURES / name):
        shapes = tf.train.load_checkpoint(str(path / "bert_model.ckpt")).get_variable_to_shape_map()
        kernels.append(sorted(tuple(shape) for name, shape in shapes.items() if "next_sentence" not in name))
    assert kernels[0] == kernels[1]  # [H, n, d] in attention


def test_both_forms_of_the_object_graph_restore_what_is_written(tmp_path):
    loaded = bert_tf.load(FIXTURES / "garden_encoder")
    loaded.save(tmp_path / "garden", format="garden")
    kernel = np.asarray(by_path(loaded.backbone)["transformer_layer_1/intermediate/kernel"])
    for root in ("encoder", "model"):
        for layer in ("_transformer_layers", "layer_with_weights-5"):  # four layers of embeddings come first
            variable, dense, block, encoder = tf.Variable(np.zeros_like(kernel)), tf.Module(), tf.Module(), tf.Module()
            dense.kernel, block._intermediate_dense = variable, dense
            setattr(encoder, layer, [tf.Module(), block] if layer.startswith("_") else block)
            tf.train.Checkpoint(**{root: encoder}).read(str(tmp_path / "garden" / "bert_model.ckpt")).expect_partial()
            assert np.array_equal(variable, kernel)


def test_heads_that_the_garden_does_not_have_are_left_out(tmp_path, caplog):
    bert = bert_tf.models.BertEncoder(bert_tf.load(FIXTURES / "garden_encoder").config, pooler=True)
    bert_tf.save(bert_tf.objectives.MaskedLM(bert, pair_task="nsp"), None, tmp_path / "nsp", format="garden")
    assert "the Model Garden's BERT has no seq_relationship: not written" in caplog.text
    plain = bert_tf.models.BertEncoder(bert.config, pooler=False)
    bert_tf.save(plain, None, tmp_path / "plain", format="garden")
    assert "the model has no pooler: that of the Model Garden is randomly initialized" in caplog.text
