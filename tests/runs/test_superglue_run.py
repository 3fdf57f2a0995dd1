"""SuperGLUE in its own layout: one task on a tiny model with its diagnostics, table, submission; settings of all."""

import contextlib
import io
import json
import re
import types
import zipfile

import numpy as np
import pytest
from tasks import tiny

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.export import run as export
from bert_tf.export.served import SERVED
from bert_tf.runs.benchmark import collect, write_submission
from bert_tf.runs.benchmark_config import BenchmarkConfig, plan_benchmark
from bert_tf.runs.benchmarks.superglue import SUPERGLUE, measure_broad_coverage, measure_gender_parity, submission_lines
from bert_tf.tasks import build_task

SETTINGS = {"task": {"sequence_length": 16}, "train": {"epochs": 1, "batch_size": 4}}
ENTAILMENT = ("entailment", "not_entailment")


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def entailments(count, **keys):
    texts = ("anna met bert", "the film was good", "bert was in paris", "a bad actor")
    first, second = keys.get("names", ("premise", "hypothesis"))
    rows = [{first: texts[i % 4], second: texts[i // 2 % 4], "idx": i} for i in range(count)]
    return [row | {"label": ENTAILMENT[i % 3 > 0]} for i, row in enumerate(rows)]


def unlabelled(rows):
    return [{key: value for key, value in row.items() if key != "label"} for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """RTE with its diagnostics, and CB without its dev file."""
    folder = tmp_path_factory.mktemp("superglue")
    write(folder / "RTE/train.jsonl", *entailments(8))
    write(folder / "RTE/val.jsonl", *entailments(6))
    write(folder / "RTE/test.jsonl", *unlabelled(entailments(3)))
    write(folder / "AX-b/AX-b.jsonl", *entailments(12, names=("sentence1", "sentence2")))
    write(folder / "AX-g/AX-g.jsonl", *entailments(8))
    write(folder / "CB/train.jsonl", {"premise": "a", "hypothesis": "b", "label": "neutral"})
    return folder


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "superglue"
    published = str(tmp_path_factory.mktemp("model") / "published")
    bert_tf.save(tiny.encoder(hidden=16), tiny.tokenizer(), published)
    given = ("task.sequence_length=16", "train.epochs=1", "train.precision=float32")
    changed = [part for setting in given for part in ("--set", f"finetune.{setting}")]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        command = ["benchmark", "superglue", str(folder), "--init-from", published, "--output", str(output), *changed]
        assert main(command) == 0
    return output, collect(SUPERGLUE, output), printed.getvalue()


def test_the_submission_and_the_diagnostics(finished, folder):
    output, results, printed = finished
    assert re.search(r"^  human \(test\) +93\.6 +77\.0 +99\.3/99\.7$", printed, re.M)
    assert "submission.zip lacks BoolQ, CB, COPA, MultiRC, ReCoRD, WiC, WSC: the leaderboard takes only all" in printed
    with zipfile.ZipFile(output / "submission.zip") as archive:
        files = {name: [json.loads(line) for line in archive.read(name).splitlines()] for name in archive.namelist()}
    assert {name: len(lines) for name, lines in files.items()} == {"RTE.jsonl": 3, "AX-b.jsonl": 12, "AX-g.jsonl": 8}
    for name, lines in files.items():
        assert [line["idx"] for line in lines] == list(range(len(lines))), name
        assert {line["label"] for line in lines} <= set(ENTAILMENT) and set(lines[0]) == {"idx", "label"}
    found = json.loads((output / "diagnostics.json").read_text())
    said, true = ([row["label"] == "entailment" for row in lines] for lines in (files["AX-g.jsonl"], entailments(8)))
    parity = np.mean([said[i] == said[i + 1] for i in (0, 2, 4, 6)])
    assert found["AX-g"] == {"gender_parity": parity, "accuracy": np.mean(np.equal(said, true))}
    assert -1 <= found["AX-b"]["matthews"] <= 1
    left = [part.title for task in SUPERGLUE.tasks.values() if task.name != "rte" for part in task.submitted]
    assert write_submission(SUPERGLUE, output) == left
    table = results.table.rows
    assert results.table.columns == ["", "RTE", "AX-b", "AX-g"] and table[0] == ["metric", "acc", "MCC", "parity/acc"]
    pair = "/".join(f"{100 * x:.1f}" for x in found["AX-g"].values())
    assert table[1][2:] == [f"{100 * found['AX-b']['matthews']:.1f}", pair]
    assert ["BERT-large (test)", "71.7", "23.0", "97.8/51.7"] in table
    assert "score" not in results.note and SUPERGLUE.find(folder)[1] == [f"{folder / 'CB'} has no val.jsonl"]


def test_the_diagnostics_are_the_formulas(tmp_path):
    """Matthews' correlation by its formula; parity of pairs of lines, whatever pair_id says."""
    generator = np.random.default_rng(0)
    true, said = generator.integers(2, size=(2, 40))
    lines = [{"sentence1": "a", "sentence2": "b", "label": ENTAILMENT[label], "idx": i} for i, label in enumerate(true)]
    answers = [{"line": i + 1, "label": ENTAILMENT[label]} for i, label in enumerate(said)]
    path = write(tmp_path / "AX-b.jsonl", *lines)
    expected = np.corrcoef(true, said)[0, 1]
    assert measure_broad_coverage(path, answers)["matthews"] == pytest.approx(expected)
    assert measure_broad_coverage(write(tmp_path / "b.jsonl", *unlabelled(lines)), answers) == {}
    pairs = [{"premise": str(i), "hypothesis": str(i // 2), "pair_id": i} for i in range(40)]
    pairs = [pair | {"label": ENTAILMENT[label]} for pair, label in zip(pairs, true)]
    found = measure_gender_parity(write(tmp_path / "AX-g.jsonl", *pairs), answers)
    assert found == {"gender_parity": np.mean(said[::2] == said[1::2]), "accuracy": np.mean(said == true)}
    with pytest.raises(DataError, match="g.jsonl, line 1: the hypothesis is not that of the next line"):
        measure_gender_parity(write(tmp_path / "g.jsonl", *pairs[1:]), answers[:-1])


QUESTIONS = [
    {"idx": 3, "question": "q", "answers": [{"idx": 30, "text": "a"}, {"idx": 31, "text": "b"}]},
    {"idx": 4, "question": "r", "answers": [{"idx": 32, "text": "c"}]},
]
#: Task -> rows, answers to each, and the lines of the submission as jiant 1.2.1, jiant/evaluate.py, writes them.
LINES = {
    "boolq": ([{"question": "q", "passage": "p", "idx": 5}, {"question": "", "passage": "p", "idx": 6}],
              [[{"label": "true"}], [{"error": "the text is empty"}]],
              ['{"idx": 5, "label": "true"}', '{"idx": 6, "label": "false"}']),
    "cb": ([{"idx": 0}], [[{"label": "neutral"}]], ['{"idx": 0, "label": "neutral"}']),
    "copa": ([{"idx": 2}], [[{"label": 1, "answer": "x"}]], ['{"idx": 2, "label": 1}']),
    "record": ([{"idx": 9, "passage": {}, "qas": [{"idx": 4}, {"idx": 6}]}],
               [[{"answer": "North"}, {"answer": "Ünal"}]],
               ['{"idx": 4, "label": "North"}', '{"idx": 6, "label": "Ünal"}']),
    "wic": ([{"idx": 1}], [[{"label": "true"}]], ['{"idx": 1, "label": "true"}']),
    "wsc": ([{"idx": 1}], [[{"label": "true"}]], ['{"idx": 1, "label": "True"}']),
    "multirc": ([{"idx": 7, "passage": {"text": "p", "questions": QUESTIONS}}],
                [[{"label": "1"}, {"label": "0"}, {"label": "0"}]],
                ['{"idx": 7, "passage": {"questions": [{"idx": 3, "answers": [{"idx": 30, "label": 1}, '
                 '{"idx": 31, "label": 0}]}, {"idx": 4, "answers": [{"idx": 32, "label": 0}]}]}}']),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_labels_of_the_submission(name, tmp_path):
    given, answers, lines = LINES[name]
    path = tmp_path / "test.jsonl"
    path.write_text("\n" + "\n".join(json.dumps(row) for row in given) + "\n")  # an empty line is no row
    numbered = [{"line": 1, "error": "the line is empty"}]
    numbered += [{"line": 2 + i} | answer for i, found in enumerate(answers) for answer in found]
    assert list(submission_lines(name, path, numbered)) == lines
    without = [query.pop("idx") for query in given[0].get("qas", [])] and given[0]
    write(path, without or {key: value for key, value in given[0].items() if key != "idx"})
    with pytest.raises(DataError, match="test.jsonl, line 1: .* has no 'idx' for"):
        list(submission_lines(name, path, [answer | {"line": 1} for answer in answers[0]]))


def test_the_settings_of_all_tasks(tmp_path):
    found = {name: tmp_path / task.title for name, task in SUPERGLUE.tasks.items()}
    base = SETTINGS | {"init_from": "run"}
    plans = {
        plan.folder.name: plan.config for plan in plan_benchmark(SUPERGLUE, BenchmarkConfig(base), found, tmp_path)
    }
    assert list(plans) == list(SUPERGLUE.tasks) and {plan.task["sequence_length"] for plan in plans.values()} == {16}
    assert plans["boolq"].data.dev == str(tmp_path / "BoolQ" / "val.jsonl")
    from_mnli = BenchmarkConfig(base, {"cb": {"init_from": "x"}}, from_mnli="mnli")
    plans = plan_benchmark(SUPERGLUE, from_mnli, found, tmp_path)
    starts = {plan.folder.name: plan.config.init_from for plan in plans}
    assert starts == dict.fromkeys(found, "run") | {"boolq": "mnli", "rte": "mnli", "cb": "x"}
    tagging = BenchmarkConfig(base, {"copa": {"task": {"kind": "tagging"}}})
    for config, message in (
        (BenchmarkConfig(base, from_mnli=True), "SuperGLUE has no MNLI; give a run fine-tuned on it"),
        (tagging, "tasks.copa.task.kind is tagging; it must be multiple"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            plan_benchmark(SUPERGLUE, config, found, tmp_path)


def test_published_numbers_have_a_column_each():
    """Bort's and DeBERTa's papers repeat the leaderboard's rows of BERT-large, RoBERTa-large and people."""
    scores = list(SUPERGLUE.published["BERT-large (test)"].values())[:8]
    parts = [np.mean([float(part) for part in score.split("/")]) for score in scores]
    assert np.mean(parts) == pytest.approx(69.0, abs=0.05), "the published score"


def test_what_is_not_served_says_so(monkeypatch):
    """Without a kind the encoder alone would be exported, which answers nothing of the task."""
    model = types.SimpleNamespace(backbone=tiny.encoder(hidden=16))
    task = build_task({"kind": "record", "sequence_length": 16}, tiny.tokenizer())
    opened = types.SimpleNamespace(source=types.SimpleNamespace(task=task), task=task, model=model, path="out")
    monkeypatch.delitem(SERVED, "record")
    message = "out: the task record is not served; its encoder alone is exported with kind=emb"
    with pytest.raises(ConfigError, match=message):
        export.served_module(opened, None, None, {"static": False})
