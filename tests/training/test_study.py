"""Studies: what is planned, what is done once, and the table."""

import json
from pathlib import Path

import pytest

from bert_tf import config, samples
from bert_tf.errors import ConfigError
from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_wordpiece
from bert_tf.training.study import StudyConfig, collect, markdown, plan, run_study

MODEL = {"hidden_size": 16, "num_layers": 1, "num_heads": 1, "intermediate_size": 32, "max_positions": 128}


def study(folder, **changes):
    task = {
        "task": {"kind": "classification"},
        "data": {split: str(folder / "labelled.tsv") for split in ("train", "dev", "test")},
        "train": {"epochs": 1, "seeds": 2, "strategy": "one"},
    }
    settings = {
        "shards": {
            "pairs": {"sequence_length": 32},
            "documents": {"sequence_length": 32, "format": "doc_sentences"},
        },
        "pretrain": {"model": {"family": "bert"} | MODEL, "train": {"steps": 2, "batch_size": 8, "strategy": "one"}},
        "finetune": {"sentiment": task},
        "rows": {
            "next_sentence": {"shards": "pairs"},
            "whole_words": {"shards": "documents", "pretrain": {"masking": {"unit": "whole_word"}}, "seeds": 2},
        },
    } | changes
    return config.build(StudyConfig, settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    texts = [json.loads(line)["text"][:4000] for line in sample.read_text(encoding="utf-8").splitlines()[:3]]
    for name, chosen in (("corpus", texts[:2]), ("held_out", texts[2:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in chosen))
    lines = [f"{word} it is\t{i % 2}" for i, word in enumerate(("good", "bad") * 8)]
    (folder / "labelled.tsv").write_text("\n".join(["sentence\tlabel", *lines, ""]))
    train_wordpiece(texts, 300, lowercase=True).save(folder / "tokenizer")
    return folder


def run(folder, output, **options):
    corpora = folder / "corpus.jsonl", folder / "tokenizer", output
    return run_study(study(folder), *corpora, build_task, held_out=folder / "held_out.jsonl", **options)


def test_a_study_is_run_in_parts_and_put_in_one_table(folder, tmp_path):
    output = tmp_path / "out"
    first = run(folder, output, rows=["next_sentence"])
    assert set(first) == {"next_sentence"}
    done = (output / "next_sentence/seed-0/sentiment/summary.json").stat().st_mtime_ns
    table = run(folder, output)
    assert (output / "next_sentence/seed-0/sentiment/summary.json").stat().st_mtime_ns >= done
    assert table["next_sentence"] == first["next_sentence"]
    assert table == json.loads((output / "results.json").read_text())
    whole_words = table["whole_words"]
    assert whole_words["seeds"] == 2 and whole_words["spread"]["eval_masked_lm_loss"] > 0
    runs = [json.loads((output / f"whole_words/seed-{i}/pretrained.json").read_text()) for i in (0, 1)]
    mean = sum(r["eval_masked_lm_loss"] for r in runs) / 2
    assert whole_words["mean"]["eval_masked_lm_loss"] == pytest.approx(mean)
    summary = json.loads((output / "next_sentence/seed-0/sentiment/summary.json").read_text())
    assert table["next_sentence"]["mean"]["sentiment.accuracy"] == summary["test"]["mean"]["accuracy"]
    assert table["next_sentence"]["spread"] == {"sentiment.accuracy": summary["test"]["spread"]["accuracy"]}
    lines = markdown(table).splitlines()
    assert len(lines) == 4 and lines[2].startswith("| next_sentence | ") and "eval_pair_accuracy" in lines[0]


def test_rows_differ_in_what_they_say(folder, tmp_path):
    experiments = plan(study(folder), tmp_path, held_out=True)
    assert [str(e.folder.relative_to(tmp_path)) for e in experiments] == [
        "next_sentence/seed-0",
        "whole_words/seed-0",
        "whole_words/seed-1",
    ]
    assert [e.pretrain.masking.unit for e in experiments] == ["token", "whole_word", "whole_word"]
    assert [e.pretrain.train.seed for e in experiments] == [0, 0, 1]
    assert experiments[1].pretrain.data.eval_shards == str(tmp_path / "held_out" / "documents")
    assert experiments[1].finetune["sentiment"].init_from == str(tmp_path / "whole_words/seed-0/pretrained")
    assert collect(experiments) == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": {"a": {"shards": "pears"}}}, "rows.a.shards is 'pears'; did you mean 'pairs'"),
        ({"rows": {"a": {"shards": "pairs", "pretrian": {}}}}, "unknown key 'rows.a.pretrian'; did you mean 'pretrain'"),
        (
            {"rows": {"a": {"shards": "pairs", "pretrain": {"masking": {"units": "span"}}}}},
            "unknown key 'rows.a.pretrain.masking.units'; did you mean 'unit'",
        ),
        ({"shards": {"pairs": {"lenght": 3}}}, "unknown key 'shards.pairs.lenght'"),
        ({"finetune": {"tags": {"data": {"train": "nowhere"}}}}, "finetune.tags.data.train: there is no file nowhere"),
        ({"finetune": {"tags": {}}}, "--set finetune.tags.data.train=FILE"),
    ],
)
def test_a_mistake_in_any_row_is_told_before_anything_is_done(folder, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        run_study(study(folder, **changes), folder / "corpus.jsonl", folder / "tokenizer", tmp_path / "out", build_task)
    assert not (tmp_path / "out").exists()


def test_an_unknown_row(folder, tmp_path):
    with pytest.raises(ConfigError, match="no row 'whole_word'; did you mean 'whole_words'"):
        run(folder, tmp_path / "out", rows=["whole_word"])
