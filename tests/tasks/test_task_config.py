"""Settings of tasks: refused with the key, without TensorFlow."""

import json
import re

import pytest
import tiny

from bert_tf import tasks
from bert_tf.errors import ConfigError, UserError
from bert_tf.tasks import TASKS, ClassificationConfig, RegressionConfig, build_task, check_task, load_task
from bert_tf.tasks.glue import GLUE_TASKS


def test_the_package_exports_what_it_lists():
    assert all(getattr(tasks, name) is not None for name in tasks.__all__)
    with pytest.raises(AttributeError, match="no attribute 'load_tasks'"):
        tasks.load_tasks


def test_what_check_task_returns_is_whole():
    assert check_task({}) == ClassificationConfig() and check_task({"preset": "stsb"}).kind == "regression"
    assert check_task({"preset": "rte"}).labels == ("entailment", "not_entailment")
    for preset in GLUE_TASKS.values():
        assert preset.metric in TASKS[preset.kind].metrics


@pytest.mark.parametrize(("config", "message"), [
    ({"kind": "classify"}, "'task.kind' is 'classify'; did you mean 'classification'"),
    ({"metric": "acuracy"}, "task.metric=acuracy is not a metric of classification; did you mean 'accuracy'"),
    ({"sequence_length": 7}, "'task.sequence_length' is 7; it must be at least 8"),
    ({"head": {"dropout": 1.0}}, "'task.head.dropout' is 1.0; it must be at least 0 and below 1"),
    ({"labels": ["a", "b", "a"]}, "task.labels holds 'a' twice"),
    ({"labels": ["a"]}, "task.labels must hold at least 2, got ['a']"),
    ({"kind": "tagging", "labels": []}, "task.labels must hold at least 1"),
    ({"labels": ["a", " "]}, "task.labels[1] is ' '"),
    ({"labels": ["a", "\ud800"]}, "task.labels[1] is '\\ud800', which is not Unicode text"),
    ({"kind": "regression", "metric": "f1"}, "task.metric=f1 is not a metric of regression"),
    ({"preset": "mnil"}, "unknown task.preset 'mnil'; did you mean 'mnli'"),
])  # fmt: skip
def test_wrong_settings(config, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        check_task(config)
    if config.keys() <= {"labels", "preset", "metric", "sequence_length"}:  # what is made in Python is checked, too
        kind = RegressionConfig if config.get("preset") == "stsb" else ClassificationConfig
        with pytest.raises(ConfigError):
            build_task(kind(**{key: value for key, value in config.items() if key != "kind"}), tiny.tokenizer())


WEIGHTS = {"loss": {"class_weights": [1, 2, 3]}, "labels": ["a", "b"]}


@pytest.mark.parametrize(("kind", "config", "message"), [
    ("classification", {"loss": {"class_weights": [0, 0]}}, "weights are at least 0, and one is above 0"),
    ("classification", WEIGHTS, "task.loss.class_weights has 3 weights, task.labels 2 labels"),
    ("classification", {"class_weights": [1, 2]}, "unknown key 'task.class_weights'; did you mean 'task.loss.class_weights'"),
    ("classification", {"frozen_layers": {"lstm_layers": 3}},
     "'task.frozen_layers.lstm_layers' applies only to .* but task.frozen_layers.name is 'none'"),
    ("classification", {"head": {"name": "brt"}}, "'task.head.name' is 'brt'; did you mean 'bert'"),
    ("regression", {"loss": {"label_smoothing": 0.1}}, "unknown key 'task.loss'"),
    ("tagging", {"head": {"units": 8}}, "'task.head.units' applies only to bilstm, but task.head.name is 'published'"),
    ("tagging", {"head": {"name": "mean"}}, "'task.head.name' is 'mean'; known: bert, bilstm, hugging_face, published"),
    ("tagging", {"frozen_layers": {"name": "last"}, "head": {"name": "bilstm"}},
     "task: head.name=bilstm has no effect with frozen_layers.name=last"),
    ("word_pair", {"head": {"name": "bilstm"}}, "'task.head.name' is 'bilstm'"),
    ("ner", {}, "'task.kind' is 'ner'; did you mean 'tagging'"),
    ("question-answering", {}, "did you mean 'question_answering'"),
    ("record", {"labels": ["no", "yes"]}, "unknown key 'task.labels'"),
    ("multiple_choice", {"format": "swga"}, "task.format is 'swga'; did you mean 'swag'"),
    ("multiple_choice", {"context_length": 3}, "task.context_length needs task.option_length"),
    ("question_answering", {"head": {"name": "bert", "beam": 5}}, "'task.head.beam' applies only to electra and xlnet, but task.head.name is 'bert'"),
    ("question_answering", {"null_threshold": 0.5, "impossible_questions": False},
     "task.null_threshold=0.5 applies only to impossible questions"),
])  # fmt: skip
def test_wrong_settings_of_a_kind(kind, config, message, tokenizer):
    with pytest.raises(ConfigError, match=message):
        build_task({"kind": kind} | config, tokenizer)


@pytest.mark.parametrize(("kind", "columns", "message"), [
    ("multi_label", {"label": ["a"]}, "task.labels and data.columns.label name different labels"),
    ("tagging", {"label": "ner"}, "unknown key 'data.columns.label'"),
    ("classification", {"tag_scheme": "IOB2"}, "unknown key 'data.columns.tag_scheme'"),
    ("regression", {"labl": "a"}, "unknown key 'data.columns.labl'; did you mean 'label'"),
    ("record", {"header": True}, "unknown key 'data.columns.header'"),
])  # fmt: skip
def test_a_role_that_a_kind_does_not_have_is_an_unknown_key(kind, columns, message, tokenizer):
    labels = {"labels": ["a", "b"]} if kind == "multi_label" else {}
    with pytest.raises(ConfigError, match=message):
        build_task({"kind": kind} | labels, tokenizer, columns)


def test_broken_task_files_are_one_sentence(tokenizer, tmp_path):
    task = build_task({"kind": "regression"}, tokenizer)
    task.learn(task.read({"text": ["a", "b"], "label": [1, 3]})).save(tmp_path)
    path = tmp_path / "task.json"
    good = json.loads(path.read_text())
    assert load_task(tmp_path, tokenizer).state.scale == 1.0
    classification = good | {"config": {**good["config"], "kind": "classification"}}

    def with_labels(labels):
        return json.dumps(classification | {"state": {"labels": labels}})

    cases = {
        "[]": "must hold a JSON object, but holds a list", with_labels([]): "task.labels must hold at least 2",
        with_labels("ab"): "'state.labels' must be a list, got 'ab'",
        json.dumps(good | {"state": {"scale": 0}}): "'state.scale' is 0.0; it must be above 0",
        json.dumps({**good, "config": {"kind": "rank"}}): "'task.kind' is 'rank'",
        json.dumps({k: v for k, v in good.items() if k != "state"}): "missing key 'state'",
    }  # fmt: skip
    for text, message in cases.items():
        path.write_text(text)
        with pytest.raises(UserError) as error:
            load_task(tmp_path, tokenizer)
        assert str(path) in str(error.value) and message in str(error.value), text[:50]
