"""Cloze questions: the sets that come with the library, files, and the numbers by their definitions."""

import collections
import json
import math
from pathlib import Path

import pytest
from fakes import FakeScorer
from opened import objective_and_tokenizer

from bert_tf.errors import DataError
from bert_tf.probing import CLOZE_SETS, ClozeQuestion, cloze_table, read_cloze, read_lama, run_cloze, text_scorer

KINDS = ("facts", "grammar", "coreference", "lexical_meaning", "sentiment", "reasoning", "sequences_and_sums")
HEADER = "kind\ttext\tanswers\toptions\n"


@pytest.mark.parametrize("language", CLOZE_SETS)
def test_the_sets_of_the_library(language):
    questions = read_cloze(CLOZE_SETS[language])
    counts = collections.Counter(question.kind for question in questions)
    assert tuple(counts) == KINDS and min(counts.values()) >= 40
    assert len({question.text for question in questions}) == len(questions)
    hangul = sum("가" <= character <= "힣" for question in questions for character in question.text)
    assert (hangul > 3000) == (language == "korean")


def test_results_by_their_definitions():
    questions = [
        ClozeQuestion("a", "x ___ y", ("good", "fine"), ("good", "bad")),
        ClozeQuestion("a", "___ y", ("red car",), ("red car", "bad", "sad")),
        ClozeQuestion("b", "x ___", ("same",), ("same", "equal")),
    ]
    log_p = {"good": -1.0, "bad": -2.0, "red": -1.5, "car": -1.0, "same": -3.0, "equal": -3.0, "sad": -9.0}
    scorer, done = FakeScorer(log_p, {"good": 6, "fine": 4, "same": 0}), []
    found = run_cloze(scorer, questions, done.append)
    assert done == [2, 3]
    a, b = found["a"], found["b"]
    assert (a.accuracy, a.count, a.ranked) == (0.5, 2, 1)  # "red car" (-2.5) loses, and is no single token
    assert a.chance == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (a.p_at_1, a.p_at_5, a.median_rank) == (0.0, 1.0, 5.0), "the better of two answers counts"
    assert (b.accuracy, b.without_context) == (0.0, 0.0), "a tie is not right"
    assert (b.p_at_1, b.median_rank) == (1.0, 1.0)


@pytest.mark.parametrize(("family", "known"), [("gpt1", False), ("gpt2", True)])
def test_options_without_context(family, known):
    """GPT-1 has no start token: nothing stands before an option alone."""
    scorer = text_scorer(*objective_and_tokenizer(Path(__file__).parents[1] / "fixtures" / "checkpoints" / family))
    found = run_cloze(scorer, [ClozeQuestion("a", "the law of ___", ("the",), ("the", "of"))])
    assert math.isnan(found["a"].without_context) != known
    assert (cloze_table(found).rows[0][1][2] is None) != known and found["a"].accuracy in (0, 1)


def test_lama(tmp_path):
    folder = tmp_path / "TREx"
    folder.mkdir()
    fact = {"predicate_id": "P17", "sub_label": "Paris", "obj_label": "France"}
    fact["masked_sentences"] = ["Paris, [MASK] or [MASK]"]
    rows = [fact, fact, fact | {"obj_label": "Italy", "judgments": [{"judgment": "no"}]}]
    (folder / "P17.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "other.jsonl").write_text(json.dumps({"obj_label": "b", "masked_sentences": ["a [MASK]"]}) + "\n")
    (tmp_path / "relations.jsonl").write_text('{"relation": "P17", "template": "[X] is in [Y] ."}\n')
    plain = read_lama(folder)
    first, other = [("P17", "Paris, ___ or ", ("France",)), ("other", "a ___", ("b",))]
    assert [(q.kind, q.text, q.answers) for q in plain] == [first, other]
    assert read_lama(folder, tmp_path / "relations.jsonl")[0].text == "Paris is in ___ ."
    found = run_cloze(FakeScorer({}, {"France": 0, "b": 3}), plain)
    assert (found["P17"].p_at_1, found["other"].p_at_1, found["other"].p_at_5) == (1.0, 0.0, 1.0)
    assert math.isnan(found["P17"].accuracy) and math.isnan(found["P17"].chance)
    (folder / "bad.jsonl").write_text('{"masked_sentences": []}')
    with pytest.raises(DataError, match="bad.jsonl, line 1: there is no text 'obj_label'"):
        read_lama(folder)
    text = '{"obj_label": "thé", "masked_sentences": ["du [MASK]"]}'
    (tmp_path / "mark.jsonl").write_bytes(text.encode("utf-8-sig"))
    assert read_lama(tmp_path / "mark.jsonl")[0].answers == ("thé",)
    (tmp_path / "latin.jsonl").write_bytes(b"\n" + text.encode("latin-1"))
    with pytest.raises(DataError, match="latin.jsonl, line 2: byte 0xe9 .* is not UTF-8"):
        read_lama(tmp_path / "latin.jsonl")


@pytest.mark.parametrize(("row", "message"), [
    ("facts\tParis is here.\tFrance\tItaly\n", "question 1: .* has 0 blanks ___; it must have one"),
    ("facts\tA ___.\t|\tItaly\n", "question 1: there is no answer"),
    ("facts\tA ___.\tFrance\tFrance\n", "there must be options beside the answer"),
    ("facts\tA ___.\tFrance|Spain\tSpain|Italy\n", "no other one may be right"),
])  # fmt: skip
def test_errors(row, message, tmp_path):
    (tmp_path / "a.tsv").write_text(HEADER + row)
    with pytest.raises(DataError, match=message):
        read_cloze(tmp_path / "a.tsv")
