"""Runs as their records on disk, without a model: what `write_report` reads."""

import dataclasses
import json

import yaml

from bert_tf.runs.benchmark import collect
from bert_tf.runs.benchmarks.glue import GLUE
from bert_tf.runs.experiment import Results
from bert_tf.table import Table

HOSTILE = '<script>alert("1")</script> & </title><img src=x onerror=alert(1)> \x00\ud800 \u202eabc'
CONFIG = {
    "init_from": None, "data": {"train": "train.tsv"}, "task": {"kind": "classification", "labels": None},
    "train": {"epochs": 3, "seed": 0}, "model": {"family": "bert", "hidden_size": 16, "num_layers": 2},
}  # fmt: skip
SCORES = {"precision": 0.75, "recall": 0.5, "f1": 0.6, "support": 4}
FINDINGS = {
    "labels": {"neg": SCORES, HOSTILE: SCORES | {"support": 3}}, "confusion": [[3, 1], [2, 1]],
    "calibration": {
        "ece": 0.123456789,
        "bins": [
            {"low": 0.4, "high": 0.6, "count": 3, "confidence": 0.55, "accuracy": 0.6666},
            {"low": 0.8, "high": 1.0, "count": 4, "confidence": 0.9, "accuracy": 0.75},
        ],
    },
    "wrong": 3,
    "errors": [
        {"text": HOSTILE, "before": HOSTILE, "where": "line 7", "true": HOSTILE, "predicted": "neg", "confidence": 0.97},
        {"text": "Anna <b>met</b> Bert", "confidence": 0.5, "marks": [[0, 4, "right", "PER"], [5, 20, "wrong", HOSTILE], [16, 20, "missed", "PER"]]},
    ],
}  # fmt: skip


def write_lines(folder, lines):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def pretraining(folder, steps=30, report=True):
    """A pretraining with held-out metrics; each number occurs once."""
    lines = []
    for i in range(1, steps + 1):
        line = {"step": 10 * i, "loss": 9 - i / 7, "masked_lm_loss": 8 - i / 7, "masked_lm_accuracy": i / 101}
        lines.append(line | {"learning_rate": 1e-4 / i})
        if i % 10 == 0:
            lines.append({"step": 10 * i, "eval_masked_lm_loss": 8.5 - i / 7, "eval_masked_lm_accuracy": i / 103})
    write_lines(folder, lines)
    config = {"model": CONFIG["model"], "objective": {"name": "masked_lm"}, "train": {"steps": 10 * steps}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if report:
        baselines = {"unigram": {"masked_lm_loss": 6.54321, "masked_lm_accuracy": 0.07654}}
        (folder / "report.json").write_text(json.dumps({"baselines": baselines}))
    return folder


def seed(folder, number=0, findings=FINDINGS, config=CONFIG):
    """A finished fine-tuning of one seed, as a run of its own or a part of one."""
    lines = []
    for e in range(3):
        metrics = {"loss": 0.71 - e / 9 - number / 100, "accuracy": 0.6123 + e / 8 + number / 50}
        lines.append({"step": 5 * (e + 1), "epoch": e, "train_loss": 0.7 - e / 10} | metrics)
    write_lines(folder, lines)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    baselines = {"dev": {"majority class": {"accuracy": 0.51234, "loss": 0.69876}}}
    finished = {"metric": "accuracy", "seed": number, "baselines": baselines, "dev": lines[-1] | {"examples": 7}}
    (folder / "finished.json").write_text(json.dumps(finished))
    if findings is not None:
        rates = [[0, 0.0], [5, 1e-3], [14, 1e-5]]
        (folder / "report.json").write_text(json.dumps({"dev": findings, "learning_rate": rates}))
    return finished


def finetuning(folder, seeds=1, **options):
    """A fine-tuning with its summary; the last seed is the best."""
    inside = [folder] if seeds == 1 else [folder / f"seed-{i}" for i in range(seeds)]
    results = [seed(path, i, **options) for i, path in enumerate(inside)]
    (folder / "config.yaml").write_text(yaml.safe_dump(options.get("config", CONFIG)))
    values = [result["dev"]["accuracy"] for result in results]
    dev = {"mean": {"accuracy": sum(values) / seeds}, "baselines": results[-1]["baselines"]["dev"]}
    if seeds > 1:
        dev["spread"] = {"accuracy": 0.0217}
    best = "." if seeds == 1 else inside[-1].name
    summary = {"metric": "accuracy", "best": best, "seeds": results, "dev": dev, "warnings": [f"dev: {HOSTILE}"]}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def study(folder):
    """A study of two rows, the first with two seeds."""
    for row, seeds in (("whole_words_and_a_long_name", 2), ("b", 1)):
        for i in range(seeds):
            pretraining(folder / row / f"seed-{i}" / "pretrained")
    columns, name = ["row", "seeds", "masked_lm_loss", "task.f1"], "whole_words_and_a_long_name"
    rows = [[name, 2, 3.71234, [0.61239, 0.02468]], ["b", 1, 3.21234, [0.51239, None]]]
    table = Table(columns, rows, {"masked_lm_loss": True, "task.f1": False})
    runs = {name: [f"{name}/seed-{i}/pretrained" for i in (0, 1)], "b": ["b/seed-0/pretrained"]}
    return results(folder, "study", table, runs)


def results(folder, kind, table, runs):
    charts = {column: table.points(column, list(runs)) for column in table.lower}
    record = Results(kind, f"{kind} of {len(runs)} runs", table, "A note.", charts, runs)
    (folder / "results.json").write_text(json.dumps(dataclasses.asdict(record)))
    return folder


def grid(folder):
    """A grid of two learning rates, two seeds each; the second is better."""
    rows, names = [], []
    for number, rate in enumerate((3e-5, 5e-5)):
        name = f"learning_rate={rate},epochs=2"
        finetuning(folder / name, seeds=2)
        rows.append([str(rate), "2", [0.71357 + number / 10, 0.0135]])
        names.append(name)
    summary = json.loads((folder / name / "summary.json").read_text()) | {"best": name}
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    table = Table(["learning_rate", "epochs", "dev accuracy"], rows, {"dev accuracy": False})
    return results(folder, "grid", table, {name: [name] for name in names})


def benchmark(folder):
    """Two tasks of GLUE, one with several seeds."""
    for task, seeds, *means in (("rte", 2, 0.57891), ("mnli", 1, 0.61234, 0.62345)):
        path = finetuning(folder / task, seeds=seeds) / "summary.json"
        summary = json.loads(path.read_text())
        for split, mean in zip(("dev", "test"), means):
            spread = {"spread": {"accuracy": 0.0123}} if seeds > 1 else {}
            summary[split] = summary["dev"] | {"mean": {"accuracy": mean}} | spread
        path.write_text(json.dumps(summary))
    record = collect(GLUE, folder)
    (folder / "results.json").write_text(json.dumps(dataclasses.asdict(record)))
    return folder
