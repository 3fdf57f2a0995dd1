"""Compressed exports of a tiny classifier answer as the float model does, or are not written."""

import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from opened import task_and_model

import bert_tf
from bert_tf.cli.main import main
from bert_tf.compression import compare, export_compressed, exporting
from bert_tf.compression.fixed_length import fixed_length, specs_of
from bert_tf.compression.onnx_file import open_onnx, quantize_onnx
from bert_tf.compression.stored_weights import STORES, store_weights
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.models import BertConfig, BertEncoder, describe
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer, load_tokenizer
from bert_tf.training.converting import write_run

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film very dull warm and the is".split()]
TEXTS = ["a good film", "the film is bad", "very dull and bad", "warm and good", "the film is very very good", "good"]
LENGTH = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of fine-tuning whose dev file has the labels that its random model answers."""
    folder = tmp_path_factory.mktemp("compressed")
    keras.utils.set_random_seed(3)
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=True)
    sizes = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64, "max_positions": 32}
    config = BertConfig(len(VOCABULARY), **sizes, activation="gelu_erf", initializer_range=0.4)
    task = build_task({"kind": "classification", "sequence_length": LENGTH, "labels": ["neg", "pos"]}, tokenizer)
    task = task.learn(task.read({"text": ["good", "bad"], "label": ["pos", "neg"]}))
    model = task.model(BertEncoder(config))
    rows = [f"{answer['label']}\t{text}\n" for answer, text in zip(task.predict(model, TEXTS), TEXTS)]
    (folder / "dev.tsv").write_text("label\ttext\n" + "".join(rows))
    record = {"model": describe(config), "task": to_dict(task.config), "data": {"dev": str(folder / "dev.tsv")}}
    tensors = {v.path: np.ascontiguousarray(v) for v in model.variables}
    write_run(folder / "run", record, tokenizer, tensors, task=task)
    return folder / "run"


@pytest.fixture(scope="module")
def expected(run):
    """The probabilities of the float model."""

    task, model = task_and_model(run)
    return np.array([list(answer["probabilities"].values()) for answer in task.predict(model, TEXTS)])


def test_a_saved_model_is_smaller_and_answers_alike(run, expected, tmp_path):
    written = export_compressed(run, quantize="dynamic_int8", output=tmp_path, tolerance=0.0)
    assert written.comparison.agreement == written.comparison.after == 1.0
    assert 0 < written.comparison.largest_difference < 5e-2
    served = tf.saved_model.load(str(written.path)).signatures["serving_default"](text=tf.constant(TEXTS))
    found = served["probabilities"].numpy()
    assert np.abs(found - expected).max() == pytest.approx(written.comparison.largest_difference, abs=1e-5)
    reader = tf.train.load_checkpoint(str(written.path / "variables" / "variables"))
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    large = [types[name] for name, shape in shapes.items() if np.prod(shape) >= 1024]
    assert len(large) == 8 and set(large) == {tf.int8}  # six kernels, the pooler's and the table of positions
    assert json.loads((written.path / "assets" / "export.json").read_text())["quantized"] == "dynamic_int8"


@pytest.mark.parametrize("quantize, dtype, bound", [
    ("float16", "float16", 2**-11), ("dynamic_int8", "int8", 0.5 / 127),
])  # fmt: skip
def test_stored_weights_differ_by_half_a_step_at_most(quantize, dtype, bound):
    keras.utils.set_random_seed(0)
    layer = keras.layers.Dense(64, bias_initializer="normal")
    layer.build((None, 32))
    layer.kernel.assign(layer.kernel * np.geomspace(1e-3, 10, 64))  # channels of different sizes
    model = keras.Sequential([keras.Input((32,)), layer])
    [stored] = store_weights(model, quantize)
    assert stored.weight is layer.kernel and stored.saved[1].dtype == dtype
    kernel, read = np.array(layer.kernel), stored.read.numpy()
    relative = np.abs(read - kernel) / np.abs(kernel).max(axis=0)
    assert 0 < relative.max() <= bound * 1.001


@pytest.mark.parametrize("quantize, apart, tolerance", [(None, 1e-5, 0.0), ("dynamic_int8", 0.1, 0.2)])
def test_a_litert_file_answers_alike(run, tmp_path, quantize, apart, tolerance):
    written = export_compressed(run, "litert", quantize, output=tmp_path / "file", tolerance=tolerance)
    assert written.comparison.examples == len(TEXTS) and written.comparison.largest_difference < apart
    assert sorted(p.name for p in written.path.iterdir()) == ["export.json", "labels.json", "model.tflite", "tokenizer"]
    settings = {"sequence_length": LENGTH, "static": True, "precision": "float32", "quantized": quantize}
    assert json.loads((written.path / "export.json").read_text()) == settings
    assert written.after.size == (written.path / "model.tflite").stat().st_size


def test_an_onnx_file_answers_alike(run, expected, tmp_path, caplog, monkeypatch):
    import onnx

    monkeypatch.setattr(tf.get_logger(), "propagate", True)  # so that caplog sees it
    written = export_compressed(run, "onnx", output=tmp_path / "file", tolerance=0.0)
    assert "NoneType" not in caplog.text
    assert written.comparison.examples == len(TEXTS) and written.comparison.largest_difference < 1e-5
    assert sorted(p.name for p in written.path.iterdir()) == ["export.json", "labels.json", "model.onnx", "tokenizer"]
    quantize_onnx(written.path / "model.onnx", tmp_path / "int8.onnx")
    weights = onnx.load(tmp_path / "int8.onnx").graph.initializer
    int8 = [w for w in weights if len(w.dims) == 2 and w.data_type == onnx.TensorProto.INT8]
    assert len(int8) >= 8  # 7 kernels and a table or more
    tokenizer = load_tokenizer(written.path / "tokenizer")
    features = tokenizer.pack(tokenizer.tokenize(TEXTS), sequence_length=LENGTH)
    specs = {name: tf.TensorSpec([None, LENGTH], x.dtype) for name, x in features.items()}
    found = fixed_length(open_onnx(tmp_path / "int8.onnx"), specs)(features)["probabilities"]
    assert 0 < np.abs(found - expected).max() < 0.1


def questions(kind):
    """(a task, examples with rows of different sizes)"""
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=True)
    if kind == "multiple_choice":
        task = build_task({"kind": kind, "sequence_length": LENGTH}, tokenizer)
        options = ["good", "dull"], ["bad", "warm", "a film"]
        return task, task.read({"context": ["the film is", "very"], "options": options, "label": [0, 2]})
    settings = {"sequence_length": 16, "max_query_length": 4, "stride": 3, "head": {"name": "electra"}}
    task = build_task({"kind": kind, "impossible_questions": True} | settings, tokenizer)
    contexts = [" ".join(TEXTS), TEXTS[0]]
    answers = [[("bad", contexts[0].index("bad"))], []]
    return task, task.read({"question": ["the film is", "a bad"], "context": contexts, "answers": answers})


@pytest.mark.parametrize("kind, format", [("multiple_choice", "onnx"), ("question_answering", "litert")])
def test_files_for_rows_of_other_shapes(tmp_path, kind, format):
    """Options beside each other, and windows with the head that asks for the ends of each start in a loop."""
    keras.utils.set_random_seed(3)
    task, examples = questions(kind)
    model = task.model(BertEncoder(BertConfig(len(VOCABULARY), 32, 1, 2, 64, max_positions=16, initializer_range=0.4)))
    file, path = exporting.FILES[format], tmp_path / "file"
    specs = specs_of(task, examples, file.rows)
    assert specs["token_ids"].shape == ([None, 3, LENGTH] if kind == "multiple_choice" else [1, 16])
    file.write(model, specs, path, None)
    found = compare(task, examples, model.infer, fixed_length(file.open(path), specs))
    assert found.agreement == 1.0 and 0 < found.largest_difference < 1e-5 and found.before == found.after


def test_a_model_that_answers_otherwise_is_refused(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(STORES, "float16", lambda value, axis: ([value], tf.zeros_like))
    command = ["export", str(run), "--quantize", "float16", "--output", str(tmp_path / "refused")]
    assert main(command) == 1
    message = capsys.readouterr().err
    for part in ("% of 6 answers differ from the float model's", "accuracy is 0.", "Nothing was written"):
        assert part in message
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("changes, message", [
    ({}, "a SavedModel is quantized; choose quantize=float16 or dynamic_int8"),
    ({"format": "onnx", "quantize": "float16"}, "the format onnx cannot be quantized by 'float16'; choose one of dynamic_int8"),
    ({"format": "litert", "version": 2}, "the format litert has no version"),
    ({"format": "lite"}, "there is no format 'lite'.*litert"),
    ({"quantize": "float16", "dev": "missing.tsv"}, "missing.tsv"),
    ({"quantize": "float16", "dev": "a.tsv", "texts": "b.txt"}, "give dev or texts, not both"),
])  # fmt: skip
def test_wrong_options_are_refused(run, tmp_path, changes, message):
    with pytest.raises(Exception, match=message) as raised:
        export_compressed(run, output=tmp_path / "x", **changes)
    assert raised.type.__module__ == "bert_tf.errors" and not (tmp_path / "x").exists()


def test_a_comparison_without_compression_is_refused(run, tmp_path, capsys):
    for option in (["--tolerance", "0.5"], ["--dev", "a.tsv"], ["--texts", "a.txt"]):
        assert main(["export", str(run), "--output", str(tmp_path / "x"), *option]) == 1
        assert f"{option[0]} needs --quantize, or --format litert or onnx" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_missing_package_is_named(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ai_edge_litert", None)
    with pytest.raises(ConfigError, match=r"needs the package ai-edge-litert, .*\[compress\]"):
        export_compressed(run, "litert")


def test_what_is_not_compared_is_refused(run, tmp_path, monkeypatch):
    writes_texts = types.SimpleNamespace(frame=1, kind="text_to_text")
    opened = types.SimpleNamespace(source=types.SimpleNamespace(task=writes_texts), task=writes_texts)
    monkeypatch.setattr(exporting, "OpenedModel", lambda source, dtype: opened)
    with pytest.raises(ConfigError, match="writes texts .text_to_text."):
        export_compressed(run, quantize="float16")
    monkeypatch.undo()
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=True)
    bert_tf.save(BertEncoder(BertConfig(len(VOCABULARY), 8, 1, 1, 8)), tokenizer, tmp_path / "encoder")
    with pytest.raises(ConfigError, match="encoder is not fine-tuned"):
        export_compressed(tmp_path / "encoder", quantize="float16")
