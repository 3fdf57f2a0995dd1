"""Versions are numbered, whole, verified, and never overwritten."""

import json
import os
import re

import pytest
import tensorflow as tf
from exports import LABELS, LENGTH, load
from tensorflow_serving.apis import prediction_log_pb2

from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.export import ExportError, ServedClassifier, ServedEmbedding, ServingModule, write_saved_model
from bert_tf.export.signatures import TRIAL_TEXTS
from bert_tf.tokenizers import load_tokenizer


class ServedLength(ServingModule):
    """An answer without the model, so that a version is written in a moment."""

    def answer(self, features):
        return {"tokens": tf.reduce_sum(tf.cast(features["padding_mask"], tf.int32), axis=1)}


@pytest.fixture
def module(models, tokenizer):
    return ServedLength(models.classifier, tokenizer, LENGTH)


def test_a_model_is_traced_once_for_all_signatures(models, tokenizer):
    traced = []

    class Counted(ServedEmbedding):
        def compute(self, features):
            traced.append(features)
            return super().compute(features)

    module = Counted(models.masked_lm.backbone, tokenizer, LENGTH)
    assert len(module.traced()) == 3 and len(traced) == 1
    module.answer_text(tf.constant(["a text"]))  # with the model, not with what the export holds
    assert len(traced) == 2


def test_versions_count_up_from_the_highest_and_are_positive_whole_numbers(module, tmp_path):
    assert write_saved_model(module, tmp_path / "model") == tmp_path / "model" / "1"
    (tmp_path / "model" / "7").mkdir()
    (tmp_path / "model" / "not-a-version").mkdir()
    assert write_saved_model(module, tmp_path / "model").name == "8"
    for version in (0, True, "3"):
        with pytest.raises(ConfigError, match="not a positive whole number"):
            write_saved_model(module, tmp_path, version)


def test_a_version_is_never_overwritten(module, exports):
    path = exports["pairs"].path
    before = sorted((str(p), p.stat().st_mtime_ns) for p in path.rglob("*"))
    with pytest.raises(RunDirectoryError, match=f"{re.escape(str(path))} exists already"):
        write_saved_model(module, path.parent, version=1)
    assert before == sorted((str(p), p.stat().st_mtime_ns) for p in path.rglob("*"))


def test_a_model_that_the_c_loader_refuses_is_not_exported(models, tokenizer, tmp_path):
    class TracksKeras(ServedClassifier):
        def traced(self):
            functions = super().traced()
            self._tracked, self.model = [], models.classifier
            return functions

    with pytest.raises(ExportError, match="cannot be loaded and run"):
        write_saved_model(TracksKeras(models.classifier, tokenizer, LABELS, LENGTH), tmp_path)
    assert os.listdir(tmp_path) == [".lock"]


class Changes(ServedLength):
    """Answers otherwise each time that its trial is asked for, which is between writing and comparing."""

    def __init__(self, *arguments, change=1.0):
        super().__init__(*arguments)
        self.factor, self.change = tf.Variable(1.0), change

    def answer(self, features):
        return {"scaled": self.factor * tf.cast(super().answer(features)["tokens"], tf.float32) / self.change}

    def trial_inputs(self, name):
        self.factor.assign_add(self.change)
        return super().trial_inputs(name)


def test_answers_that_differ_or_are_not_finite_are_not_exported(models, tokenizer, tmp_path):
    with pytest.raises(ExportError, match="another 'serving_default.scaled'"):
        write_saved_model(Changes(models.classifier, tokenizer, LENGTH), tmp_path)
    with pytest.raises(DataError, match=r"numbers that are not finite \(serving_default.scaled\)"):
        write_saved_model(Changes(models.classifier, tokenizer, LENGTH, change=0.0), tmp_path)
    assert os.listdir(tmp_path) == [".lock"]


@pytest.mark.parametrize(("error", "said", "message"), [
    (tf.errors.ResourceExhaustedError, "/x/variables; No space left on device", "the disk is full"),
    (tf.errors.UnknownError, "/x/variables; File too large", "the file would be larger than the limit"),
])  # fmt: skip
def test_a_refusal_of_the_disk_is_one_sentence_and_leaves_nothing(error, said, message, module, tmp_path, monkeypatch):
    def save(module, folder, signatures):
        (tmp_path / os.path.basename(folder) / "variables").mkdir()
        raise error(None, None, said)

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(RunDirectoryError, match=f"cannot write {re.escape(str(tmp_path))}/1: {message}"):
        write_saved_model(module, tmp_path)
    assert os.listdir(tmp_path) == [".lock"]


def test_what_a_killed_export_left_is_removed_and_all_else_stays(module, tmp_path, monkeypatch):
    for name in (".1.0123abcd.bert_tf", ".12.4567cdef.bert_tf", "2", ".cache.tmp"):
        (tmp_path / name / "variables").mkdir(parents=True)
    (tmp_path / "notes.tmp").touch()
    monkeypatch.setattr(tf.saved_model, "save", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_saved_model(module, tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".cache.tmp", ".lock", "2", "notes.tmp"]


def test_a_model_that_diverged_is_named_and_not_exported(models, tokenizer, tmp_path):
    kernel = models.classifier.trainable_variables[-2]
    before = kernel.numpy()
    try:
        kernel.assign(tf.fill(kernel.shape, float("nan")))
        with pytest.raises(DataError, match=f"'{kernel.path}' are not finite.* lower learning rate"):
            write_saved_model(ServedClassifier(models.classifier, tokenizer, LABELS, LENGTH), tmp_path)
    finally:
        kernel.assign(before)
    assert os.listdir(tmp_path) == []


def test_labels_may_hold_any_character(models, tokenizer, tmp_path):
    labels = ("a\tb", "c\nd\re\u2028f\x85", 'ü\x00/\\" {}')
    path = write_saved_model(ServedClassifier(models.classifier, tokenizer, labels, LENGTH), tmp_path / "odd\t\u2028")
    assert json.loads((path / "assets" / "labels.json").read_text(encoding="utf-8")) == list(labels)
    served = load(path).signatures["serving_default"](text=tf.constant(["the cat"]))
    assert [label.decode() for label in served["labels"].numpy()[0]] == list(labels)
    assert served["label"].numpy()[0].decode() in labels


def test_labels_settings_tokenizer_and_warmup_requests_lie_beside_the_model(exports, tokenizer):
    assets = exports["pairs"].path / "assets"
    assert json.loads((assets / "labels.json").read_text(encoding="utf-8")) == ["negative", "neutral", "größer"]
    assert load_tokenizer(assets / "tokenizer").fingerprint == tokenizer.fingerprint
    settings = json.loads((assets / "export.json").read_text())
    assert settings == {"sequence_length": LENGTH, "static": False, "precision": "float32", "quantized": None}
    path = exports["pairs"].path / "assets.extra" / "tf_serving_warmup_requests"
    requests = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        assert log.WhichOneof("log_type") == "predict_log"
        requests.append(log.predict_log.request)
    assert {r.model_spec.signature_name for r in requests} == {"serving_default"}
    assert sorted(requests[0].inputs) == ["text", "text_pair"]
    texts = [[t if isinstance(t, bytes) else t.encode()] for t in TRIAL_TEXTS]
    assert [tf.make_ndarray(r.inputs["text"]).tolist() for r in requests] == texts
    assert [tf.make_ndarray(r.inputs["text_pair"]).tolist() for r in requests] == texts[::-1]
