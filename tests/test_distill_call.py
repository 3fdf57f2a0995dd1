"""`bert_tf.distill`: from a teacher and Python objects to an opened student."""

import pytest
from training import labelled_runs

import bert_tf
from bert_tf.errors import ConfigError, DataError, RunDirectoryError

TEXTS = [f"the {film} {word}" for word in ("good", "fine", "bad", "poor") for film in ("film", "plot", "a")]
ROWS = [{"text": text, "label": str(int("good" in text or "fine" in text))} for text in TEXTS]
QUICK = {"epochs": 1, "batch_size": 4}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    labelled_runs.write_encoder(folder / "pretrained", num_layers=2)
    task = {"kind": "classification", "sequence_length": 16}
    bert_tf.finetune(folder / "pretrained", train=ROWS, dev=ROWS, task=task, output=folder / "run", **QUICK)
    return folder / "run"


def test_a_student_of_layers(teacher, tmp_path, caplog):
    call = {"student": {"layers": [1]}, "train": ROWS, "dev": 0.25, "output": tmp_path / "small"} | QUICK
    student = bert_tf.distill(teacher, **call, unlabelled=[{"text": "a plot"}])
    assert student.config.num_layers == 1 and student.predict("a good film")["label"] in ("0", "1")
    assert [row["model"] for row in student.results["comparison"]] == ["teacher", "student"]
    assert (tmp_path / "small" / "data" / "unlabelled.jsonl").read_text() == '{"text": "a plot"}\n'
    with caplog.at_level("WARNING"):
        bert_tf.distill(teacher, **call | {"dev": ROWS[:6], "output": tmp_path / "seen"})
    assert "6 of 6 examples of dev are among those" in caplog.text
    again = bert_tf.distill(teacher, **call, unlabelled=[{"text": "a plot"}])
    assert again.results["dev"] == student.results["dev"]
    with pytest.raises(RunDirectoryError, match="its terms.soft_labels is .*, this one's"):
        bert_tf.distill(teacher, **call, unlabelled=[{"text": "a plot"}], terms={"soft_labels": 0.25})


@pytest.mark.parametrize(("changes", "message"), [
    ({"student": "bert_mimi"}, "bert_mimi"),
    ({"dev": "missing.jsonl"}, "there is no file missing.jsonl"),
    ({"termss": {}}, "unknown key 'termss'; did you mean 'terms'"),
    ({"train": None}, "dev=0.25 is a share of train, and there is none; give train, or data for dev"),
])  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_written(teacher, tmp_path, changes, message):
    call = {"student": {"layers": [1]}, "train": ROWS, "dev": 0.25, "output": tmp_path / "small"} | QUICK | changes
    with pytest.raises((ConfigError, DataError, RunDirectoryError), match=message):
        bert_tf.distill(teacher, **call)
    assert not (tmp_path / "small").exists()
