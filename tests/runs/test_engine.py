"""The engine of many runs: what is run, what is left out, and what is written after each."""

from types import SimpleNamespace

import pytest

from bert_tf.config import read_record
from bert_tf.errors import NonFiniteError
from bert_tf.runs.engine import run_all
from bert_tf.runs.experiment import Experiment, Results
from bert_tf.table import Table


def run(output, diverging, killed=""):
    """(names of the experiments that were run, function that runs them); "c" starts from "a"."""
    asked, done = [], {}
    starts = {"a": None, "b": None, "c": str(output / "a"), "d": None}
    experiments = [Experiment(name, SimpleNamespace(init_from=start), output / name) for name, start in starts.items()]

    def one(experiment):
        asked.append(experiment.name)
        if experiment.name == killed:
            raise KeyboardInterrupt
        if experiment.name in diverging:
            raise NonFiniteError(f"{experiment.name}: the loss is not finite")
        done[experiment.name] = 0.5

    def collect(diverged):
        assert {path.rpartition("/")[2] for path in diverged} <= set(diverging)
        rows = [[name, value] for name, value in done.items()]
        return Results("study", "", Table(["", "f1"], rows), "", {}, {}) if rows else None

    return asked, lambda: run_all(experiments, output, one, collect)


def test_what_starts_from_a_run_that_diverged_is_left_out(tmp_path, capsys):
    asked, start = run(tmp_path, ["a"])
    assert [row[0] for row in start().table.rows] == ["b", "d"] and asked == ["a", "b", "d"]
    assert "a diverged: a: the loss is not finite" in capsys.readouterr().out
    with pytest.raises(NonFiniteError, match="a: the loss"):
        run(tmp_path, ["a", "b", "d"])[1]()


def test_results_are_written_after_each(tmp_path):
    _, start = run(tmp_path, [], killed="c")
    with pytest.raises(KeyboardInterrupt):
        start()
    assert [row[0] for row in read_record(Results, tmp_path / "results.json").table.rows] == ["a", "b"]
    assert "0.5000" in (tmp_path / "report.html").read_text(encoding="utf-8")
