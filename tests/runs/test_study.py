"""Studies: what is planned, what is done once, and the table."""

import contextlib
import dataclasses
import json
import threading
from types import SimpleNamespace

import pytest
from training.sample_corpus import addresses, vocabulary_of, write_corpus

from bert_tf import config
from bert_tf.config import read_record
from bert_tf.errors import ConfigError, DataError, NonFiniteError, RunDirectoryError
from bert_tf.files import lock_directory
from bert_tf.runs import study as studies
from bert_tf.runs.experiment import Experiment, Results
from bert_tf.runs.grid_config import read_grid
from bert_tf.runs.study import StudyConfig, collect, plan, run_study
from bert_tf.training.optimizer_config import AdafactorConfig
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.run_directory import RunDirectory
from bert_tf.vectors import SkipGramConfig, VectorsConfig, VectorsTrainConfig, train_vectors

MODEL = {"hidden_size": 16, "num_layers": 1, "num_heads": 1, "intermediate_size": 32, "max_positions": 128}
WHOLE_WORDS = {"objective": {"masking": {"strategy": "whole_word"}}}
ONCE = {"train": {"seeds": 1}}  # of each task


def study(folder, **changes):
    task = {
        "task": {"kind": "classification"},
        "data": {split: str(folder / "labelled.tsv") for split in ("train", "dev", "test")},
        "train": {"epochs": 1, "seeds": 2, "batch_size": 16, "strategy": "one"},
    }
    settings = {
        "shards": {"pairs": {"sequence_length": 32}, "documents": {"sequence_length": 32, "format": "doc_sentences"}},
        "pretrain": {"model": {"family": "bert"} | MODEL, "train": {"steps": 2, "batch_size": 8, "strategy": "one"}},
        "finetune": {"sentiment": task},
        "rows": {
            "next_sentence": {"shards": "pairs"},
            "whole_words": {"shards": "documents", "pretrain": WHOLE_WORDS, "finetune": ONCE, "seeds": 2},
        },
    } | changes
    return config.build(StudyConfig, settings)


def row(**pretrain):
    return {"rows": {"a": {"shards": "pairs", "pretrain": pretrain}}}


def tuning(**finetune):
    return {"rows": {"a": {"shards": "pairs", "finetune": finetune}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    texts = addresses(3, 4000)
    write_corpus(folder / "corpus.jsonl", texts[:2])
    write_corpus(folder / "held_out.jsonl", texts[2:])
    lines = [f"{word} it is\t{i % 2}" for i, word in enumerate(("good", "bad") * 8)]
    (folder / "labelled.tsv").write_text("\n".join(["sentence\tlabel", *lines, ""]))
    vocabulary_of(texts).save(folder / "tokenizer")
    return folder


def run(folder, output, **options):
    corpora = folder / "corpus.jsonl", folder / "tokenizer", output
    return run_study(study(folder), *corpora, held_out=folder / "held_out.jsonl", **options)


@pytest.mark.slow
def test_a_study_is_run_in_parts_and_put_in_one_table(folder, tmp_path):
    output = tmp_path / "out"
    first = run(folder, output, rows=["next_sentence"])
    assert [row[0] for row in first.rows] == ["next_sentence"]
    finished = output / "next_sentence/seed-0/sentiment/seed-0/finished.json"
    checkpoints = output / "next_sentence/seed-0/pretrained/checkpoints"
    done = finished.stat().st_mtime_ns, [p.stat().st_mtime_ns for p in sorted(checkpoints.iterdir())]
    table = run(folder, output)
    again = finished.stat().st_mtime_ns, [p.stat().st_mtime_ns for p in sorted(checkpoints.iterdir())]
    assert again == done, "what was done is not done again"
    page = (output / "report.html").read_text(encoding="utf-8")
    for mean in table.means().values():
        assert all(f'value="{mean[name]}"' in page for name in ("eval_masked_lm_loss", "sentiment.accuracy"))
    next_sentence, whole_words = (dict(zip(table.columns, row)) for row in table.rows)
    assert next_sentence == dict(zip(first.columns, first.rows[0]))
    written = json.loads((output / "results.json").read_text())["table"]
    assert written == json.loads(json.dumps(dataclasses.asdict(table)))
    assert whole_words["seeds"] == 2 and whole_words["eval_masked_lm_loss"][1] > 0
    runs = [json.loads((output / f"whole_words/seed-{i}/pretrained.json").read_text()) for i in (0, 1)]
    mean = sum(r["eval_masked_lm_loss"] for r in runs) / 2
    assert whole_words["eval_masked_lm_loss"][0] == pytest.approx(mean)
    summary = json.loads((output / "next_sentence/seed-0/sentiment/summary.json").read_text())
    accuracy = summary["test"]["mean"]["accuracy"], summary["test"]["spread"]["accuracy"]
    assert next_sentence["sentiment.accuracy"] == accuracy and next_sentence["eval_masked_lm_loss"][1] is None
    lines = table.markdown().splitlines()
    assert len(lines) == 4 and lines[2].startswith("| next_sentence | ") and "eval_pair_accuracy" in lines[0]


def test_rows_differ_in_what_they_say(folder, tmp_path):
    experiments = plan(study(folder), tmp_path, held_out=True)
    folders = [str(e.folder.relative_to(tmp_path)) for e in experiments]
    seeds = ["next_sentence/seed-0", "whole_words/seed-0", "whole_words/seed-1"]
    assert folders == [f"{seed}/{part}" for seed in seeds for part in ("pretrained", "sentiment")]
    pretrain = [e.config for e in experiments[::2]]
    assert [config.objective.masking.strategy for config in pretrain] == ["token", "whole_word", "whole_word"]
    assert [config.train.seed for config in pretrain] == [0, 0, 1]
    assert pretrain[1].data.eval_shards == str(tmp_path / "held_out" / "documents")
    assert experiments[3].config.init_from == str(tmp_path / "whole_words/seed-0/pretrained")
    assert collect(experiments, tmp_path) is None


@pytest.mark.parametrize(("changes", "message"), [
    ({"rows": {"a": {"shards": "pears"}}}, "rows.a.shards is 'pears'; did you mean 'pairs'"),
    ({"rows": {"a": {"shards": "pairs", "pretrian": {}}}}, "unknown key 'rows.a.pretrian'; did you mean 'pretrain'"),
    ({"finetune": {"tags": {"data": {"train": "nowhere"}}}}, "finetune.tags.data.train: there is no file nowhere"),
    ({"finetune": {"tags": {}}}, "rows.next_sentence: finetune.tags.data.train must be given: finetune.tags.data.train=FILE"),
    ({"finetune": {"tags": 3}}, "finetune.tags must be a mapping, got 3"),
    ({"finetune": {"pretrained": {}}}, "finetune.pretrained: no folder of the output can have the name"),
    ({"rows": {0.15: {"shards": "pairs"}}}, "rows: YAML reads 0.15 as float; write it in quotes"),
    ({"rows": {"a/b": {"shards": "pairs"}}}, "rows.a/b: no folder of the output can have the name"),
    ({"shards": {"pairs": {"text_field": "body"}}},
     "shards.pairs.text_field: all shards read the text alike; set corpus.text_field"),
    ({"pretrain": {"train": {"seed": 3}}}, "pretrain.train.seed is set by the study; remove it and set 'seeds'"),
    (row(train={"seed": 3}), "rows.a.pretrain.train.seed is set by the study"),
    (row(data={"eval_shards": "s"}), "rows.a.pretrain.data.eval_shards is set by the study"),
    ({"finetune": {"a": {"init_from": "run"}}}, "finetune.a.init_from is set by the study; remove it: each task starts from"),
    ({"rows": {"a": {"shards": "pairs", "init_from": "x"}}},
     "rows.a.shards is of pretraining, and the row starts from init_from"),
    (row(train={"batch_size": 8, "accumulation_steps": 3}), "rows.a: pretrain.train: batch_size=8 cannot be cut into"),
    (row(objective={"pair_task": "sop"}), "rows.a: objective.pair_task=sop, but .* nsp"),
    (row(model={"max_positions": 16}), "rows.a: the shards' sequence_length=32 is beyond the model's 16"),
    (row(model={"max_positions": 64}), "rows.a: finetune.sentiment.task.sequence_length=128 is beyond the model's 64"),
    (tuning(task={"knd": "tagging"}), "rows.a: finetune.sentiment: unknown key 'task.knd'"),
])  # fmt: skip
def test_a_mistake_in_any_row_is_told_before_anything_is_done(folder, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        run_study(study(folder, **changes), folder / "corpus.jsonl", folder / "tokenizer", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_line_of_a_task_is_told_before_anything_is_done(folder, tmp_path):
    (tmp_path / "labelled.tsv").write_text("sentence\tlabel\ngood\t1\nbad\n")
    settings = study(folder, finetune={"sentiment": {"task": {"kind": "classification"}, "data": {
        "train": str(folder / "labelled.tsv"), "dev": str(tmp_path / "labelled.tsv")}}})  # fmt: skip
    advice = r"labelled.tsv, line 3.* with finetune\.sentiment\.data\.columns\.skip_malformed=true"
    with pytest.raises(DataError, match=advice):
        run_study(settings, folder / "corpus.jsonl", folder / "tokenizer", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_row_may_start_from_a_model_that_was_made_elsewhere(folder, tmp_path):
    settings = VectorsConfig(SkipGramConfig(size=8, epochs=1), train=VectorsTrainConfig(workers=1))
    train_vectors(settings, folder / "corpus.jsonl", tmp_path / "vectors")
    encoder = {"family": "bilstm", "hidden_size": 16}

    def table(path, output):
        of_vectors = {"init_from": str(path), "finetune": {"encoder": encoder} | ONCE}
        rows = {"next_sentence": {"shards": "pairs"}, "word_vectors": of_vectors}
        arguments = folder / "corpus.jsonl", folder / "tokenizer", output
        return run_study(study(folder, rows=rows), *arguments, rows=["word_vectors"])

    with pytest.raises(RunDirectoryError, match="nowhere is not a run directory"):
        table(tmp_path / "nowhere", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    assert table(tmp_path / "vectors", tmp_path / "out").columns == ["row", "seeds", "sentiment.accuracy"]
    run = tmp_path / "out" / "word_vectors" / "seed-0" / "sentiment"
    assert RunDirectory.open(run).section("model")["family"] == "bilstm"


def test_labelled_files_may_be_elsewhere(folder, tmp_path):
    data = {split: f"gs://bucket/{split}.tsv" for split in ("train", "dev")}
    finetune = {"sentiment": {"task": {"kind": "classification"}, "data": data}}
    experiments = plan(study(folder, finetune=finetune), tmp_path)
    assert experiments[1].config.configs[0].data.train == "gs://bucket/train.tsv"


def test_an_empty_section_changes_nothing(folder, tmp_path):
    empty = {"rows": {"a": {"shards": "pairs", "pretrain": {"train": None, "objective": None}, "finetune": None}}}
    pretrained, sentiment = plan(study(folder, **empty), tmp_path)
    assert pretrained.config.train.steps == 2 and sentiment.config.configs[0].train.seeds == 2
    assert len(plan(study(folder, finetune=None, shards={"pairs": None, "documents": {}}), tmp_path)) == 3


def test_a_row_leaves_out_what_its_optimizer_or_model_does_not_have(folder, tmp_path):
    common = {"model": {"family": "bert", "initializer_range": 0.05} | MODEL}
    common |= {"optimizer": {"bias_correction": True, "warmup_steps": 9}}
    t5 = {"family": "t5", "head_size": 8, "initializer_range": None, "max_positions": None}
    adafactor = {"name": "adafactor", "bias_correction": None, "warmup_steps": None}
    pretrain = {"model": t5, "objective": {"name": "denoising"}, "optimizer": adafactor}
    rows = {"a": {"shards": "documents"}, "b": {"shards": "documents", "pretrain": pretrain}}
    a, b = plan(study(folder, pretrain=common, rows=rows, finetune={}), tmp_path)
    assert a.config.optimizer.bias_correction and a.config.model["initializer_range"] == 0.05
    assert b.config.optimizer == AdafactorConfig(warmup_steps=None)  # null is a value of this one
    sizes = {key: value for key, value in MODEL.items() if key != "max_positions"}
    assert b.config.model == {"family": "t5", "head_size": 8} | sizes
    task = study(folder).finetune["sentiment"] | {"optimizer": {"clip_norm": 0.5}}
    rows["a"]["finetune"] = {"optimizer": {"name": "adafactor", "clip_norm": None}}
    (_, a, *_) = plan(study(folder, pretrain=common, rows=rows, finetune={"sentiment": task}), tmp_path)
    assert a.config.configs[0].optimizer == AdafactorConfig()
    documents, adafactor = {"shards": "documents"}, {"name": "adafactor", "clip_norm": 1.0}
    misspelled = pretrain | {"optimizer": pretrain["optimizer"] | {"clip_treshold": None}}
    set_anyway = pretrain | {"model": t5 | {"initializer_range": 0.1}}
    tuned = {"finetune": {"optimizer": adafactor}}
    for changes, message in (
        ({"rows": {"b": documents | {"pretrain": misspelled}}},
         "rows.b: unknown key 'pretrain.optimizer.clip_treshold'; did you mean 'clip_threshold'"),
        ({"rows": {"b": documents | {"pretrain": set_anyway}}},
         "rows.b: model.initializer_range is set for all rows, and this row's model has no such"),
        # Of all rows: there is nothing to leave out.
        ({"rows": {"a": documents}, "pretrain": common | {"optimizer": adafactor}},
         "'pretrain.optimizer.clip_norm' applies only to .* remove 'pretrain.optimizer.clip_norm'"),
        ({"rows": {"a": documents | tuned}, "finetune": {"sentiment": task}},
         "rows.a: finetune.sentiment: optimizer.clip_norm is set for all rows, .* clip_norm: null in"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            plan(study(folder, **{"pretrain": common, "finetune": {}} | changes), tmp_path)


def test_the_text_is_read_as_the_study_says(folder, tmp_path, monkeypatch):
    class Read(Exception):
        pass

    def stop(inputs, output, tokenizer, settings):
        raise Read(settings)

    monkeypatch.setattr(studies, "write_shards", stop)
    with pytest.raises(Read, match="sentences='lines', text_field='body'"):
        config = study(folder, corpus={"sentences": "lines", "text_field": "body"})
        run_study(config, folder / "corpus.jsonl", folder / "tokenizer", tmp_path / "out")


def test_processes_that_start_together_take_turns_to_write_shards(folder, tmp_path, monkeypatch, caplog):
    output = tmp_path / "out"

    class Written(Exception):
        pass

    def stop(*_):
        with pytest.raises(RunDirectoryError, match="in use"), lock_directory(output):
            pass
        raise Written

    monkeypatch.setattr(studies, "_write_shards", stop)
    other = contextlib.ExitStack()
    other.enter_context(lock_directory(output))
    threading.Timer(0.5, other.close).start()
    with caplog.at_level("WARNING", "absl"), pytest.raises(Written):
        run(folder, output)
    (message,) = caplog.messages
    assert message.startswith("waiting for process ") and message.endswith(f"which is using {output}")


def test_a_row_that_diverges_does_not_end_the_study(folder, tmp_path, monkeypatch, capsys):
    def pretrain(settings, output):
        if "next_sentence" in str(output):
            raise NonFiniteError("step 3: the loss is not finite")
        return SimpleNamespace(metrics=lambda: [{"tokens_per_second": 1.0}]), {"loss": 2.0}

    monkeypatch.setattr(studies, "pretrain", pretrain)
    monkeypatch.setattr(studies, "finetune_grid", lambda *_: None)
    monkeypatch.setattr(studies, "_write_shards", lambda *_: None)
    run(folder, tmp_path / "out")
    assert set(read_record(Results, tmp_path / "out" / "results.json").table.means()) == {"whole_words"}
    assert "next_sentence/seed-0/pretrained diverged: step 3" in capsys.readouterr().out


def test_an_unknown_row(folder, tmp_path):
    with pytest.raises(ConfigError, match="no row 'whole_word'; did you mean 'whole_words'"):
        run(folder, tmp_path / "out", rows=["whole_word"])


@pytest.mark.parametrize("file", ["pretrained.json", "sentiment/summary.json"])
@pytest.mark.parametrize(
    "text", ["", "[]", '{"loss": "2"}', '{"metric": "f1", "best": ".", "seeds": [], "dev": {"mean": 3}}']
)
def test_damaged_results_are_a_sentence(tmp_path, file, text):
    (seed := tmp_path / "row" / "seed-0").joinpath("sentiment").mkdir(parents=True)
    (seed / "pretrained.json").write_text('{"loss": 2.0, "gradient_norm": null}')
    grid = read_grid({"init_from": "pretrained", "data": {"train": "x", "dev": "x"}})
    configs = {"pretrained": PretrainConfig(), "sentiment": grid}
    experiments = [Experiment(part, one, seed / part) for part, one in configs.items()]
    assert collect(experiments, tmp_path).table.means() == {"row": {"seeds": 1, "loss": 2.0}}
    (seed / file).write_text(text)
    with pytest.raises(DataError, match=file):
        collect(experiments, tmp_path)
