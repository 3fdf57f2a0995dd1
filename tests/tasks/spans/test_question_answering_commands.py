"""finetune, evaluate and predict of question answering, as they are typed."""

import json

import pytest
import tiny_questions as tiny

import bert_tf
from bert_tf.cli.main import main


def run(*arguments):
    assert main([str(a) for a in arguments]) == 0


def test_from_files_to_official_predictions(tmp_path, capsys):
    squad = tiny.write_squad(tmp_path / "squad.json")
    bert_tf.save(tiny.encoder(), tiny.tokenizer(), tmp_path / "bert")
    values = "task.sequence_length=32 task.max_query_length=6 task.stride=16 task.n_best=3 train.epochs=4"
    values += " train.batch_size=2 train.precision=float32 optimizer.learning_rate=1e-2 train.seeds=1"
    files = ["--train", squad, "--dev", squad, "--test", squad, "--output", tmp_path / "run"]
    options = [part for value in values.split() for part in ("--set", value)]
    run("finetune", "--config", "finetune/published/squad2", "--init-from", tmp_path / "bert", *files, *options)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    saved = json.loads((tmp_path / "run" / "task.json").read_text())["state"]
    dev, test = summary["dev"]["mean"], summary["test"]["mean"]
    assert summary["metric"] == "best_f1" and saved["threshold"] == dev["best_f1_threshold"] + 1e-4 != 1e-4
    # The test file is measured with the threshold that the dev file gave; here they are one file.
    assert test["f1"] == pytest.approx(dev["best_f1"]) and summary["test_metric"] == "f1"
    assert summary["test"]["baselines"].keys() == {"closest sentence", "no answer"}

    capsys.readouterr()
    run("evaluate", tmp_path / "run", squad, "--json")
    assert json.loads(capsys.readouterr().out)["f1"] == pytest.approx(test["f1"])
    outputs = ["--output", tmp_path / "answers.jsonl", "--official", tmp_path / "predictions.json"]
    run("predict", tmp_path / "run", "--file", squad, *outputs)
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    official = json.loads((tmp_path / "predictions.json").read_text())
    assert official == {a["id"]: a["answer"] for a in answers} and official.keys() == set("abcd")
