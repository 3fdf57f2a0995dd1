"""Cloze questions: the sets that come with the library, files, and the numbers by their definitions."""

import collections
import json
import math
from pathlib import Path

import pytest
from fakes import FakeScorer
from opened import objective_and_tokenizer

from bert_tf.errors import DataError
from bert_tf.probing import CLOZE_SETS, Cloze, Lama, cloze_question, text_scorer

KINDS = ("facts", "grammar", "coreference", "lexical_meaning", "sentiment", "reasoning", "sequences_and_sums")
HEADER = "kind\ttext\tanswers\toptions\n"


@pytest.mark.parametrize("language", CLOZE_SETS)
def test_the_sets_of_the_library(language):
    questions = Cloze().read(language)
    counts = collections.Counter(question.groups for question in questions)
    assert tuple(counts) == tuple((kind,) for kind in KINDS) and min(counts.values()) >= 40
    assert len({question.texts for question in questions}) == len(questions)
    hangul = sum("가" <= character <= "힣" for question in questions for character in question.texts[0])
    assert (hangul > 3000) == (language == "korean")


def test_results_by_their_definitions():
    questions = [
        cloze_question("a", "x ___ y", ("good", "fine"), ("good", "bad")),
        cloze_question("a", "___ y", ("red car",), ("red car", "bad", "sad")),
        cloze_question("b", "x ___", ("same",), ("same", "equal")),
    ]
    log_p = {"good": -1.0, "bad": -2.0, "red": -1.5, "car": -1.0, "same": -3.0, "equal": -3.0, "sad": -9.0}
    found = Cloze().run(FakeScorer(log_p, {"good": 6, "fine": 4, "same": 0}), questions)
    a, b = found["a"], found["b"]
    assert (a["right"], a["questions"]) == (0.5, 2)  # "red car" (-2.5) loses, and is no single token
    assert found.facts["ranked"] == {"a": 1, "b": 1, "mean of kinds": 2}
    assert a["chance"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (a["P@1"], a["P@5"], a["median rank"]) == (0.0, 1.0, 5.0), "the better of two answers counts"
    assert (b["right"], b["no context"]) == (0.0, 0.0), "a tie is not right"
    assert (b["P@1"], b["median rank"]) == (1.0, 1.0)
    assert (found["mean of kinds"]["median rank"], found["mean of kinds"]["questions"]) == (3.0, 3)


@pytest.mark.parametrize(("family", "known"), [("gpt1", False), ("gpt2", True)])
def test_options_without_context(family, known):
    """GPT-1 has no start token: nothing stands before an option alone."""
    scorer = text_scorer(*objective_and_tokenizer(Path(__file__).parents[1] / "fixtures" / "checkpoints" / family))
    found = Cloze().run(scorer, [cloze_question("a", "the law of ___", ("the",), ("the", "of"))])["a"]
    assert math.isnan(found["no context"]) != known and found["right"] in (0, 1)


def test_lama(tmp_path):
    folder = tmp_path / "TREx"
    folder.mkdir()
    fact = {"predicate_id": "P17", "sub_label": "Paris", "obj_label": "France"}
    fact["masked_sentences"] = ["Paris, [MASK] or [MASK]"]
    rows = [fact, fact, fact | {"obj_label": "Italy", "judgments": [{"judgment": "no"}]}]
    (folder / "P17.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "other.jsonl").write_text(json.dumps({"obj_label": "b", "masked_sentences": ["a [MASK]"]}) + "\n")
    (tmp_path / "relations.jsonl").write_text('{"relation": "P17", "template": "[X] is in [Y] ."}\n')
    plain = Lama().read(folder)
    assert plain == [cloze_question("P17", "Paris, ___ or ", ["France"]), cloze_question("other", "a ___", ["b"])]
    assert Lama(tmp_path / "relations.jsonl").read(folder)[0].texts == ("Paris is in France .",)
    found = Lama().run(FakeScorer({}, {"France": 0, "b": 3}), plain)
    assert (found["P17"]["P@1"], found["other"]["P@1"], found["other"]["P@5"]) == (1.0, 0.0, 1.0)
    assert math.isnan(found["P17"]["right"]) and math.isnan(found["P17"]["chance"])
    (folder / "bad.jsonl").write_text('{"masked_sentences": []}')
    with pytest.raises(DataError, match="bad.jsonl, line 1: 'obj_label' is None; it must be a text"):
        Lama().read(folder)


@pytest.mark.parametrize(("row", "message"), [
    ("facts\tParis is here.\tFrance\tItaly\n", "line 2: .* has 0 blanks ___; it must have one"),
    ("facts\tA ___.\t|\tItaly\n", "line 2: there is no answer"),
    ("facts\tA ___.\tFrance\tFrance\n", "there must be options beside the answer"),
    ("facts\tA ___.\tFrance|Spain\tSpain|Italy\n", "no other one may be right"),
])  # fmt: skip
def test_errors(row, message, tmp_path):
    (tmp_path / "a.tsv").write_text(HEADER + row)
    with pytest.raises(DataError, match=message):
        Cloze().read(tmp_path / "a.tsv")
