"""GLUE in its own layout, on a tiny model: order, table, submission, restart."""

import dataclasses
import json
import os
import re
import types
import zipfile

import numpy as np
import pytest
from tasks import tiny

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, UserError
from bert_tf.runs import benchmark
from bert_tf.runs.benchmark import collect, run_benchmark, score, write_submission
from bert_tf.runs.benchmark_config import BenchmarkConfig, plan_benchmark
from bert_tf.runs.benchmarks.glue import GLUE, prediction
from bert_tf.tasks import build_task
from bert_tf.training.run_records import Summary

SENTENCES = ["good film", "bad film", "the plot was awful", "a fine actor"]


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")


def pairs(labels, header, rows=6):
    labelled = [(i, SENTENCES[i % 4], SENTENCES[(i + 1) % 4], labels[i % len(labels)]) for i in range(rows)]
    return [header, *labelled]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """RTE, STS-B, MNLI with diagnostics; QQP without its dev file."""
    folder = tmp_path_factory.mktemp("glue")
    header = ("index", "sentence1", "sentence2")
    for split in ("train", "dev"):
        write(folder / f"RTE/{split}.tsv", *pairs(("entailment", "not_entailment"), (*header, "label")))
        write(folder / f"STS-B/{split}.tsv", *pairs((0.0, 2.5, 5.0), (*header, "score"), rows=8))
    mnli = ("contradiction", "entailment", "neutral")
    for file, count in (("train", 12), ("dev_matched", 6), ("dev_mismatched", 4)):
        write(folder / f"mnli/{file}.tsv", *pairs(mnli, (*header, "gold_label"), count))
    for file in ("RTE/test", "STS-B/test", "mnli/test_matched", "mnli/test_mismatched", "AX/AX"):
        write(folder / f"{file}.tsv", header, *[(i, SENTENCES[i], "good plot") for i in range(3)])
    write(folder / "QQP/train.tsv", ("id", "question1", "question2", "is_duplicate"))
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "published"
    bert_tf.save(tiny.encoder(hidden=16), tiny.tokenizer(), path)
    return str(path)


SETTINGS = {"task": {"sequence_length": 16}, "train": {"epochs": 1, "batch_size": 4}}


@pytest.fixture(scope="module")
def finished(folder, published, tmp_path_factory):
    """The output of the command, and what it printed."""
    output = tmp_path_factory.mktemp("output") / "glue"
    order, real = [], benchmark.finetune

    def finetune(config, path):
        order.append((path.name, config.init_from))
        return real(config, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "finetune", finetune)
        config = BenchmarkConfig(finetune=SETTINGS | {"init_from": published}, from_mnli=True)
        results = run_benchmark(GLUE, config, folder, output)
    return output, order, results


def test_the_table_has_the_numbers_of_the_runs(finished, published):
    output, order, results = finished
    # MNLI comes before the tasks that start from it.
    assert order == [("mnli", published), ("rte", str(output / "mnli")), ("stsb", str(output / "mnli"))]
    assert "3 of 9 tasks of GLUE" in (output / "report.html").read_text(encoding="utf-8")
    assert set(results.runs) == {"mnli", "rte", "stsb"} and results == collect(GLUE, output)
    assert json.loads((output / "results.json").read_text()) == json.loads(json.dumps(dataclasses.asdict(results)))
    summary = json.loads((output / "mnli" / "summary.json").read_text())
    both = [summary[split]["mean"]["accuracy"] for split in ("dev", "test")]
    table = results.table
    assert table.columns == ["", "MNLI", "RTE", "STS-B"]
    assert table.rows[0] == ["metric", "acc", "acc", "Pearson/Spearman"]
    assert table.rows[1][1] == "/".join(f"{100 * value:.1f}" for value in both)
    assert table.rows[2][:2] == ["no model", "33.3"]
    assert ["BERT-base", "84.7", "69.3", "89.0"] in table.rows and len(table.rows) == 3 + len(GLUE.published)
    assert "score" not in results.note


def test_the_submission_has_the_official_names_and_labels(finished):
    output, _, _ = finished
    with zipfile.ZipFile(output / "submission.zip") as archive:
        files = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    assert list(files) == ["MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv", "RTE.tsv", "STS-B.tsv"]
    for name, lines in files.items():
        assert lines[0] == "index\tprediction" and [line.split("\t")[0] for line in lines[1:]] == ["0", "1", "2"], name
        answers = {line.split("\t")[1] for line in lines[1:]}
        if name == "STS-B.tsv":
            assert all(re.fullmatch(r"[0-5]\.\d{3}", answer) for answer in answers)
        else:
            preset = {"MNLI-m.tsv": "mnli", "MNLI-mm.tsv": "mnli", "AX.tsv": "mnli"}.get(name, name[:-4].lower())
            assert answers <= set(bert_tf.load(output / preset).task.labels)
    assert write_submission(GLUE, output) == ["QNLI", "QQP", "SST-2", "MRPC", "CoLA", "WNLI"]


def test_nothing_is_done_twice(finished, folder, published, monkeypatch, capsys):
    output, _, _results = finished
    before = {path: path.stat().st_mtime_ns for path in (output / "submission").iterdir()}
    monkeypatch.setattr(benchmark, "open_source", lambda path: pytest.fail("predicted again"))
    config = ["--set", "from_mnli=true"]
    own = "task.sequence_length=16 train.epochs=1 train.batch_size=4 train.precision=float32"
    # The shipped configuration has BERT's learning rate and warm-up; these are the runs' own.
    for setting in (*own.split(), "optimizer.learning_rate=2e-5", "optimizer.warmup_fraction=0.1"):
        config += ["--set", f"finetune.{setting}"]
    assert main(["benchmark", "glue", str(folder), "--init-from", published, "--output", str(output), *config]) == 0
    assert {path: path.stat().st_mtime_ns for path in (output / "submission").iterdir()} == before
    printed = capsys.readouterr().out
    assert "submission.zip lacks QNLI, QQP, SST-2, MRPC, CoLA, WNLI: the leaderboard takes only all of them" in printed
    assert re.search(r"^  RoBERTa-large +90\.2 +86\.6 +92\.4$", printed, re.M)


def test_a_task_that_was_trained_again_is_answered_again(finished, folder):
    output, _, _ = finished
    lines, done = output / "submission" / "RTE.tsv", output / "rte" / "finished.json"
    before = lines.read_text()
    lines.write_text("of the old model\n")
    os.utime(lines, (done.stat().st_mtime - 1,) * 2)
    benchmark._predict(GLUE, "rte", folder / "RTE", output, 4)
    assert lines.read_text() == before


def test_the_test_file_of_mrpc_is_read_as_it_is_distributed(tmp_path, monkeypatch):
    header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [(i % 2, i, i, SENTENCES[i], 'a "good plot') for i in range(4)]
    write(tmp_path / "msr_paraphrase_test.txt", header, *rows)
    for file in ("config.yaml", "finished.json"):
        write(tmp_path / "mrpc" / file)
    task = build_task({"preset": "mrpc"}, tiny.tokenizer())
    task.predict = lambda model, examples, batch_size: [{"label": "1"} for _ in examples.text_pairs]
    monkeypatch.setattr(benchmark, "open_source", lambda path: None)
    monkeypatch.setattr(benchmark, "OpenedModel", lambda _: types.SimpleNamespace(task=task, model=None))
    benchmark._predict(GLUE, "mrpc", tmp_path, tmp_path, 4)
    assert (tmp_path / "submission/MRPC.tsv").read_text().splitlines()[1:] == ["0\t1", "1\t1", "2\t1", "3\t1"]


def test_what_is_found(folder, tmp_path):
    found, unusable = GLUE.find(folder)
    assert list(found) == ["rte", "stsb", "mnli"] and unusable == [f"{folder / 'QQP'} has no dev.tsv"]
    assert list(GLUE.find(folder, ["stsb"])[0]) == ["stsb"]
    write(tmp_path / "glue/MRPC/msr_paraphrase_train.txt", ("Quality",))
    for asked, message in (
        ((folder, ["qqp"]), "QQP has no dev.tsv"), ((folder, ["sst2"]), "has no folder SST-2"),
        ((folder, ["qp"]), "'qp': GLUE has no such task; did you mean 'qqp'"),
        ((tmp_path,), "has no folder of GLUE: MNLI, QNLI"), ((tmp_path / "none",), "there is no such folder"),
        ((tmp_path / "glue",), "MRPC has no train.tsv and no dev.tsv; of Microsoft's"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=message):
            GLUE.find(*asked)


def test_settings_are_checked_before_anything_is_trained(folder, tmp_path):
    found, _ = GLUE.find(folder)
    base = SETTINGS | {"init_from": "run"}
    plans = plan_benchmark(GLUE, BenchmarkConfig(base, tasks={"rte": {"train": {"epochs": 9}}}), found, tmp_path)
    plans = {plan.folder.name: plan.config for plan in plans}
    assert {name: plan.train.epochs for name, plan in plans.items()} == {"rte": 9, "stsb": 1, "mnli": 1}
    assert plans["mnli"].data.test == str(folder / "mnli" / "dev_mismatched.tsv") and plans["rte"].data.test is None
    for config, message in (
        (BenchmarkConfig(base, tasks={"rt": {}}), "tasks.rt: GLUE has no such task; did you mean 'rte'"),
        (BenchmarkConfig(base, tasks={"rte": {"train": {"epoch": 9}}}), "unknown key 'tasks.rte.train.epoch'"),
        (BenchmarkConfig(base, tasks={"rte": {"task": {"kind": "regression"}}}), "task.preset=rte is classification"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            plan_benchmark(GLUE, config, found, tmp_path)
    with pytest.raises(ConfigError, match="from_mnli=true needs MNLI"):
        plan_benchmark(GLUE, BenchmarkConfig(base, from_mnli=True), {"rte": folder / "RTE"}, tmp_path)


def test_the_score_is_the_mean_of_the_nine():
    """Table 1 of the paper: a task's two metrics, and MNLI's two dev sets, are averaged first."""
    generator = np.random.default_rng(0)
    summaries, means = {}, []
    for name, files in GLUE.tasks.items():
        values = generator.uniform(size=2)
        if files.other_dev:
            dev, test = ({"mean": {"accuracy": value}} for value in values)
        else:
            dev, test = {"mean": dict(zip(files.metrics, values))}, None
        summaries[name] = Summary(files.metrics[0], ".", [], dev, test=test)
        means.append(np.mean(values[: 2 if files.other_dev else len(files.metrics)]))
    assert score(GLUE, summaries) == pytest.approx(100 * np.mean(means))


def test_predictions_without_an_answer():
    assert prediction("stsb", {"error": "the line is empty"}) == "0.000"
    assert prediction("stsb", {"score": 7.0}) == "5.000"
    assert prediction("rte", {"error": "the line is empty"}) == "entailment"
