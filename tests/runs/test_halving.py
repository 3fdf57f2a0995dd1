"""Successive halving: who goes on, for how long, and that it is restarted."""

import json

import pytest
from training.sample_corpus import addresses, vocabulary_of, write_corpus

from bert_tf import config
from bert_tf.config import read_record
from bert_tf.errors import ConfigError, NonFiniteError
from bert_tf.runs import halving
from bert_tf.runs.experiment import Results
from bert_tf.runs.study import StudyConfig, plan
from bert_tf.table import Table

MODEL = {"family": "bert", "hidden_size": 16, "num_layers": 1, "num_heads": 1, "intermediate_size": 32}
MODEL |= {"max_positions": 32}


def search(rows, **settings):
    pretrain = {"model": MODEL, "objective": {"pair_task": "none"}}
    pretrain |= {"train": {"steps": 8, "batch_size": 8, "strategy": "one"}}
    shards = {"text": {"sequence_length": 32, "format": "full_sentences"}}
    rows = {name: {"shards": "text", "pretrain": change} for name, change in rows.items()}
    return config.build(StudyConfig, {"shards": shards, "pretrain": pretrain, "rows": rows, "halving": settings})


def table_of(means, lowest=True):
    return Table(["row", "loss"], [[name, mean.get("loss")] for name, mean in means.items()], {"loss": lowest})


@pytest.mark.parametrize("lowest, winners", [(True, ["a", "b"]), (False, ["e", "d"])])
def test_the_better_rows_go_on_with_more_updates(monkeypatch, lowest, winners):
    """Five rows that are better or worse in the order of their names, whatever their updates."""
    found = []

    def run_study(settings, *data):
        steps = {name: row["pretrain"]["train"]["steps"] for name, row in settings.rows.items()}
        found.extend((name, count) for name, count in steps.items() if name not in dict(found))
        return table_of({name: {"loss": ord(name[0])} for name in settings.rows}, lowest)

    monkeypatch.setattr(halving, "run_study", run_study)
    changes = {"b": {"train": {"steps": 80}}, "c": {"train": {"steps": 40, "steps_per_execution": 5}}}
    settings = search(dict.fromkeys("ade", {}) | changes, metric="loss", rounds=4, keep=0.4)
    table = halving.run_halving(settings, "corpus", "tokenizer", "output")
    steps = {"a": 8, "b": 80, "c": 40, "d": 8, "e": 8}
    first = {f"{name}-round-1": max(1, round(0.064 * steps[name])) for name in "abde"} | {"c-round-1": 5}
    assert dict(found[:5]) == first
    second, third, last = found[5:7], found[7:8], found[8:]
    assert second == [(f"{name}-round-2", round(0.16 * steps[name])) for name in winners]
    assert third == [(f"{winners[0]}-round-3", round(0.4 * steps[winners[0]]))]
    assert last == [(f"{winners[0]}-round-4", steps[winners[0]])]
    assert set(table.means()) == {name for name, _ in found}


def test_rows_that_diverged_are_out_and_no_row_is_trained_again(monkeypatch):
    """In pretraining (a) or in fine-tuning (b)."""
    asked = []

    def run_study(settings, corpus, tokenizer, output, held_out, rows):
        asked.append(rows)
        means = {name: {"loss": ord(name[0])} for name in settings.rows if name[0] != "a"}
        return table_of({name: {} if name[0] == "b" else mean for name, mean in means.items()})

    monkeypatch.setattr(halving, "run_study", run_study)
    settings = search(dict.fromkeys("abcd", {}), metric="loss", rounds=2)
    table = halving.run_halving(settings, "corpus", "tokenizer", "output")
    assert set(table.means()) == {"b-round-1", "c-round-1", "d-round-1", "c-round-2"}
    assert asked == [[f"{name}-round-1" for name in "abcd"], ["c-round-2"]]


def test_a_round_in_which_every_row_diverges(monkeypatch):
    def run_study(settings, *data):
        return table_of({name: {"loss": ord(name[0])} for name in settings.rows if name.endswith("round-1")})

    monkeypatch.setattr(halving, "run_study", run_study)
    settings = search(dict.fromkeys("abcd", {}), metric="loss", rounds=2)
    with pytest.raises(NonFiniteError, match=r"every row of round 2 of 2 diverged \(a, b\)"):
        halving.run_halving(settings, "corpus", "tokenizer", "output")


def test_a_warm_up_in_updates_is_shortened_with_the_run():
    settings = search({"a": {"optimizer": {"warmup_steps": 4}}}, metric="loss")
    shortened = halving._shorten(settings, "a", 0.5)["pretrain"]
    assert shortened == {"train": {"steps": 4}, "optimizer": {"warmup_steps": 2}}


@pytest.mark.slow
def test_a_search_is_trained_and_continued(tmp_path):
    texts = addresses(3, 4000)
    corpus = write_corpus(tmp_path / "corpus.jsonl", texts[:2])
    held_out = write_corpus(tmp_path / "held.jsonl", texts[2:])
    tokenizer = vocabulary_of(texts)
    rows = {"slow": {"optimizer": {"learning_rate": 1e-9}}, "fast": {"optimizer": {"learning_rate": 1e-2}}}

    def run(metric):
        return halving.run_halving(search(rows, metric=metric, rounds=2), corpus, tokenizer, tmp_path / "out", held_out)

    with pytest.raises(ConfigError, match="halving.metric is 'eval_los', and row 'slow' has: .*eval_loss"):
        run("eval_los")
    first = tmp_path / "out" / "fast-round-1" / "seed-0" / "pretrained" / "checkpoints" / "step-00000004"
    written = first.stat().st_mtime_ns
    table = run("eval_loss").means()
    results = (tmp_path / "out").glob("*/*/pretrained.json")
    steps = {path.parent.parent.name: json.loads(path.read_text())["step"] for path in results}
    assert steps == {"slow-round-1": 4, "fast-round-1": 4, "fast-round-2": 8}
    assert first.stat().st_mtime_ns == written
    assert table["fast-round-2"]["eval_loss"] < table["fast-round-1"]["eval_loss"]
    assert read_record(Results, tmp_path / "out" / "results.json").table.means() == table


def test_what_cannot_be_shortened_is_refused(tmp_path):
    settings = search({"a": {}}, metric="loss")
    given = config.to_dict(settings) | {"pretrain": {"model": MODEL}}
    with pytest.raises(ConfigError, match="rows.a: halving needs pretrain.train.steps"):
        plan(config.build(StudyConfig, given), tmp_path)
    given = config.to_dict(settings) | {"rows": {"a": {"init_from": "vectors"}}}
    with pytest.raises(ConfigError, match="rows.a is not pretrained, so halving cannot shorten it; remove the row"):
        plan(config.build(StudyConfig, given), tmp_path)


@pytest.mark.parametrize("row, message", [
    (5, "'rows.a.pretrain' must be a mapping, got 5"),
    ({"train": {"steps": "100"}}, "rows.a: 'pretrain.train.steps' must be int, got '100'"),
    ({"train": {"steps_per_execution": 0}}, "rows.a: 'pretrain.train.steps_per_execution' is 0; it must be at least 1"),
])  # fmt: skip
def test_wrong_settings_are_told_before_they_are_shortened(tmp_path, row, message):
    settings = search({"a": row}, metric="loss")
    with pytest.raises(ConfigError, match=message):
        halving.run_halving(settings, "corpus", "tokenizer", tmp_path)
    with pytest.raises(ConfigError, match=message):
        plan(settings, tmp_path)
