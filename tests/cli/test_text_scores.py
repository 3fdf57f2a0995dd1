"""`bert-tf evaluate` of texts on the small published-format GPT-2 of the fixtures."""

import json
import math
from pathlib import Path

import pytest
from opened import objective_and_tokenizer
from typed_command import error_of, output_of, run

from bert_tf.errors import DataError
from bert_tf.generation import TextScorer
from bert_tf.tasks.rows.opening import read_dicts

pytestmark = pytest.mark.usefixtures("loaded_once")
GPT2 = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "gpt2"
PAIRS = [("the", " a"), ("the a\tb", " the"), ("", "the")]


@pytest.fixture(scope="module")
def scorer(loaded_once):
    objective, tokenizer = objective_and_tokenizer(str(GPT2))
    return TextScorer(objective.backbone, tokenizer)


def test_a_pair_and_files_of_pairs(scorer, tmp_path):
    expected = scorer.continuations(PAIRS)
    row = json.loads(output_of(f"evaluate {GPT2} --continuation the ' a'"))
    assert row["log_likelihood"] == pytest.approx(expected[0].log_likelihood, abs=1e-5)
    assert (row["tokens"], row["is_greedy"]) == (expected[0].tokens, expected[0].is_greedy)
    assert (row["context"], row["continuation"]) == PAIRS[0]

    lines = [json.dumps({"context": c, "continuation": t}) for c, t in PAIRS]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    printed = output_of(f"evaluate {GPT2} --continuations {tmp_path}/pairs.jsonl --batch-size 1")
    found = [json.loads(line) for line in printed.splitlines()]
    likelihoods = [row["log_likelihood"] for row in found]
    assert likelihoods == pytest.approx([e.log_likelihood for e in expected], abs=1e-5)
    assert [row["context"] for row in found] == [c for c, _ in PAIRS]


def test_perplexity_of_a_corpus(scorer, tmp_path, capsys):
    texts = ["the a the b " * 20, "a b c", "b"]
    (tmp_path / "corpus.txt").write_text("\n\n".join(texts))
    (tmp_path / "more.jsonl").write_text(json.dumps({"text": "the"}))
    expected = scorer.perplexity([text.strip() for text in texts] + ["the"], length=12, stride=5)
    run(f"evaluate {GPT2} --length 12 --stride 5 --json --batch-size 1 {tmp_path}")
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["nll"] == pytest.approx(expected.nll, rel=1e-4)
    assert [found[n] for n in ("tokens", "words", "bytes")] == [expected.tokens, 80 + 3 + 1 + 1, expected.bytes]
    assert found["per_word"] == pytest.approx(math.exp(expected.nll / 85), rel=1e-3)
    assert "score " in shown.err and "MB" in shown.err


@pytest.mark.parametrize(("arguments", "message"), [
    ("", "give files, or --continuation, or --continuations"),
    ("--continuation the ' a' --stride 4", "are for a corpus"),
    ("corpus.txt --report", "is not fine-tuned, its files are a corpus; remove --report"),
    ("corpus.txt --length 12 --stride 12", "stride=12 must be at least 1 and below"),
    ("corpus.txt --length 5000", "length=5000 is beyond the model's"), ("nowhere.txt", "nowhere.txt"),
    (f"--continuation '{'the ' * 3000}' ' a'", "positions; shorten it"),
    ("--continuations corpus.txt", "give a TSV or CSV file with a header"),
], ids=lambda value: value[:40])  # fmt: skip
def test_mistakes_are_one_sentence(arguments, message, tmp_path, monkeypatch):
    (tmp_path / "corpus.txt").write_text("the a b")
    monkeypatch.chdir(tmp_path)
    assert message in error_of(f"evaluate {GPT2} {arguments}")


def test_rows_without_their_columns_are_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("context\tcontinuaton\nthe\ta\n")
    with pytest.raises(DataError, match="a.tsv, line 2: there is no column 'continuation'; did you mean 'continuaton'"):
        read_dicts(tmp_path / "a.tsv", ["continuation"])
    (tmp_path / "a.tsv").write_text("context\tcontinuation\nthe\n")
    with pytest.raises(DataError, match="line 2: 1 field where the header has 2"):
        read_dicts(tmp_path / "a.tsv")
    (tmp_path / "a.jsonl").write_text('{"a": [1]}')
    with pytest.raises(DataError, match="'a' is .*; it must be a string or a number"):
        read_dicts(tmp_path / "a.jsonl")
