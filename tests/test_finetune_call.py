"""`bert_tf.finetune`: from Python objects or files to an opened model, resumed, refused and overwritten."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.training.finetune_config import FinetuneTrainConfig
from bert_tf.training.shares import parts_of

BERT = Path(__file__).parent / "fixtures" / "checkpoints" / "bert"
TEXTS = [f"the {word} of the {other}" for word in ("law", "war", "people", "states") for other in ("union", "country")]
ROWS = [{"text": text, "label": "union" if "union" in text else "country"} for text in TEXTS] * 2
QUICK = {"epochs": 1, "batch_size": 4, "task": {"sequence_length": 16}}


def train(output, rows=ROWS, **changes):
    return bert_tf.finetune(BERT, **{"train": rows, "dev": 0.25, "output": output} | QUICK | changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    output = tmp_path_factory.mktemp("calls") / "run"
    return output, train(output, optimizer={"learning_rate": 1e-3})


def test_rows_become_a_run_and_an_opened_model(trained):
    output, model = trained
    assert model.predict("the war")["label"] in ("union", "country")
    assert 0 <= model.results["dev"]["mean"]["accuracy"] <= 1 and "warnings" in model.results
    files = {split: (output / "data" / f"{split}.jsonl").read_text().splitlines() for split in ("train", "dev")}
    assert {split: len(lines) for split, lines in files.items()} == {"train": 12, "dev": 4}
    rows = [json.loads(line) for lines in files.values() for line in lines]
    assert sorted(map(str, rows)) == sorted(map(str, ROWS)), "each row is in one of the two"
    measured = bert_tf.load(output).evaluate(output / "data" / "dev.jsonl")["loss"]
    assert measured == pytest.approx(model.results["dev"]["mean"]["loss"], rel=1e-5)


def test_the_same_call_returns_what_is_there_and_another_one_is_refused(trained):
    output, model = trained
    again = train(output, optimizer={"learning_rate": 1e-3})
    assert again.results == model.results
    before = (output / "data" / "train.jsonl").read_bytes()
    with pytest.raises(RunDirectoryError, match="its optimizer.learning_rate is 0.001, this one's 0.002"):
        train(output, optimizer={"learning_rate": 2e-3})
    with pytest.raises(RunDirectoryError, match="was trained on other data: train differs from .* overwrite=True"):
        train(output, ROWS[1:], optimizer={"learning_rate": 1e-3})
    assert (output / "data" / "train.jsonl").read_bytes() == before
    own = str(output / "data" / "train.jsonl")
    with pytest.raises(ConfigError, match="overwrite=True would delete .*train.jsonl, which is trained on"):
        train(output, own, overwrite=True)
    other = train(output, ROWS[2:], overwrite=True)
    assert other.results != model.results and (output / "data" / "train.jsonl").read_bytes() != before


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"lr": 1e-3}, ConfigError, "'lr' is a setting of the optimizer; give optimizer={'learning_rate': ..."),
    ({"epoch": 2}, ConfigError, "unknown key 'epoch'"),
    ({"num_train_epochs": 2}, ConfigError, "unknown setting 'num_train_epochs'; did you mean 'epochs'"),
    ({"max_length": 2}, ConfigError, "unknown key 'max_length'; did you mean 'task.sequence_length'"),
    ({"task": "ner"}, ConfigError, "'task.kind' is 'ner'; did you mean 'tagging'"),
    ({"columns": {"txt": "a"}}, ConfigError, "unknown key 'data.columns.txt'"),
    ({"dev": 0.01}, ConfigError, "dev=0.01 of 16 rows is 0; give a share that leaves a row to both"),
    ({"train": [{"text": "a", "label": object()}] * 9}, DataError, "example 0: .* cannot be written as JSON"),
    ({"dev": [{"text": "a", "label": object()}]}, DataError, "dev, example 0: .* cannot be written as JSON"),
    ({"train": ["a", "b"]}, DataError, "example 0: it is 'a'; it must be a dict of columns"),
    ({"train": [{"text": "a"}] * 9}, DataError, "has a usual name of a label"),
])  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_left_behind(changes, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_folders_of_the_user_stay(tmp_path):
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "data" / "train.jsonl").write_text("mine")
    files = dict.fromkeys(("train", "dev"), str(BERT / "config.json"))
    for changes, message in (
        ({}, "data was not made for a run of this library"),
        ({"overwrite": True}, "project holds no run .data., so it is not deleted"),
        (files, "is not empty and holds no run .data."),
    ):
        with pytest.raises(RunDirectoryError, match=message):
            train(tmp_path / "project", **changes)
        assert (tmp_path / "project" / "data" / "train.jsonl").read_text() == "mine"


def test_files_columns_and_numbers_of_numpy(tmp_path):
    (tmp_path / "train.csv").write_text("review,stars\n" + "".join(f"{text},{len(text)}\n" for text in TEXTS))
    dev = {"review": TEXTS, "stars": np.array([len(text) for text in TEXTS], np.float32)}
    how = {"columns": {"text": "review", "label": "stars"}, "task": {"kind": "regression", "sequence_length": 16}}
    model = train(tmp_path / "run", str(tmp_path / "train.csv"), dev=dev, **how)
    rows = [{"review": text, "stars": len(text)} for text in TEXTS]
    assert model.evaluate(rows)["loss"] == pytest.approx(model.evaluate(dev)["loss"])  # the columns of the training
    assert set(model.predict("the law")) == {"score"} and not (tmp_path / "run" / "data" / "train.jsonl").exists()


def test_a_share_of_rows_with_a_column_for_each_label():
    rows = [{"text": text, "union": int("union" in text), "war": int("war" in text)} for text in TEXTS] * 2
    parts = parts_of(rows, {"label": ["union", "war"]}, "train")
    assert sorted(parts.labels) == ["0 0"] * 6 + ["0 1"] * 2 + ["1 0"] * 6 + ["1 1"] * 2


def test_a_share_of_a_conll_file(tmp_path):
    sentences = [f"1 the O\n2 {word} B-X" for word in ("law", "war", "people", "union")]
    (tmp_path / "a.conll").write_text("\n\n".join(sentences))
    task, columns = {"kind": "tagging", "sequence_length": 16}, {"words": 1}
    model = train(tmp_path / "run", tmp_path / "a.conll", task=task, columns=columns)
    assert sorted(path.name for path in (tmp_path / "run" / "data").glob("*.conll")) == ["dev.conll", "train.conll"]
    assert [word["word"] for word in model.predict("the law")["words"]] == ["the", "law"]


def test_errors_name_what_was_given_and_not_the_copy(tmp_path):
    words = "\n\n".join("the O\nlaw B-X" for _ in range(12)).split("\n")
    words[2:2] = ["", ""]  # more empty lines than the copy has
    words[20] = "law"
    (tmp_path / "a.conll").write_text("\n" + "\n".join(words) + "\n")
    for share in (0.25, 0.75):  # in either part
        with pytest.raises(DataError, match=rf"{tmp_path}/a\.conll, line 22: 1 field"):
            train(tmp_path / "run", tmp_path / "a.conll", dev=share, task={"kind": "tagging", "sequence_length": 16})
    rows = ROWS[: len(TEXTS)] + [{"text": ["no"], "label": "union"}] + ROWS
    for share in (0.25, 0.75):
        with pytest.raises(DataError, match=rf"train, example {len(TEXTS)}: "):
            train(tmp_path / "run", rows, dev=share)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("settings, message", [
    ({"data": {"dev": 0.5}}, "unknown setting 'data'; give the data as train, dev and test"),
    ({"validation_split": 0.5}, "or dev=0.1, a share of train"),
])  # fmt: skip
def test_a_setting_without_effect_is_refused(settings, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        train(tmp_path / "run", **settings)
    with pytest.raises(ConfigError, match=message):
        bert_tf.distill("task", student="bert_tiny", train=[], output=tmp_path / "run", **settings)


def test_its_settings_have_no_name_of_their_own():
    """A setting of `train` that were called as an argument of the function could not be given."""
    assert not inspect.signature(bert_tf.finetune).parameters.keys() & FinetuneTrainConfig.__dataclass_fields__.keys()
