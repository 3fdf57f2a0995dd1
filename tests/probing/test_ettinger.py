"""Ettinger's files: their questions, and prediction accuracy and sensitivity as her code computes them."""

import numpy as np
import pytest
from fakes import FakeScorer

from bert_tf.errors import DataError
from bert_tf.probing import Ettinger, expectation

CPRAG = """item\tcontext_s1\tcontext_s2\texpected\twithin_category\tbetween_category\tconstraint
0\tHe caught the pass.\tHe likes\tfootball\tbaseball\tmonopoly\tH
1\tShe said checkmate.\tShe likes\tchess\tmonopoly\tfootball\tL
"""
ROLE = """item\tcontext\texpected\texp_cloze\ttarget\ttgt_cloze\ttgt_cloze(strict)
61-b\twhich journalist the star had \tavoided|hated by\t0.1\tinterviewed\t0.1\t0
61-a\twhich star the journalist had \tinterviewed\t0.5\tinterviewed\t0.5\t0.5
"""
NEGATION = """item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\tlicensing
0\tA robin is (a|an)\tA robin is not (a|an)\tbird\tinsect\tY
1\tTea is very\tTea is not very\tgood\tbad\tN
"""


def test_files(tmp_path):
    for name, text in (("CPRAG", CPRAG), ("ROLE", ROLE), ("NEG", NEGATION)):
        (tmp_path / f"{name}.tsv").write_text(text)
    cprag, role, negation = (Ettinger().read(tmp_path / f"{name}.tsv") for name in ("CPRAG", "ROLE", "NEG"))
    context = "He caught the pass. He likes"
    words = "football", "baseball", "monopoly"
    groups = ["CPRAG, all", "CPRAG, high constraint"]
    assert cprag[0] == expectation(groups, [(context, word) for word in words])
    assert cprag[2] == expectation(groups[:1], [(context, "football")], is_prediction=True)
    places = [(f"which {a} the {b} had", "interviewed") for a, b in (("star", "journalist"), ("journalist", "star"))]
    assert role[0] == expectation(["ROLE, all"], places)
    assert role[1].texts == tuple(f"which journalist the star had {word}." for word in ("avoided", "hated"))
    assert [question.texts for question in negation[4:]] == [("A robin is a bird.",), ("Tea is very good.",)]
    kinds = ["NEG, all", "NEG, negative", "NEG, negative, natural"]
    assert negation[1] == expectation(kinds, [("A robin is not an", "insect"), ("A robin is not a", "bird")])
    assert len(Ettinger().read(tmp_path / "NEG.tsv", tmp_path / "ROLE.tsv", most=1)) == 2 + 2
    (tmp_path / "NEG.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DataError, match="NEG.tsv is not of CPRAG-102, ROLE-88 or NEG-136; it has a, b"):
        Ettinger().read(tmp_path / "NEG.tsv")
    for name, text, word in (("ROLE", ROLE, "interviewed"), ("NEG", NEGATION, "insect")):
        (tmp_path / f"{name}.tsv").write_text(text.replace(word, ""))
        with pytest.raises(DataError, match=f"{name}.tsv: a row lacks one of "):
            Ettinger().read(tmp_path / f"{name}.tsv")


class Scorer(FakeScorer):
    """Finds words more probable the more often they are in the table, without the full stop."""

    def span_scores(self, texts, spans):
        assert all(text.endswith(".") and text[end] == "." for text, (_, end) in zip(texts, spans))
        return super().span_scores([text.replace(".", " ") for text in texts], spans)


def test_numbers(tmp_path):
    (tmp_path / "CPRAG.tsv").write_text(CPRAG)
    (tmp_path / "NEG.tsv").write_text(NEGATION)
    p = {
        "football": 0.5, "baseball": 0.3, "monopoly": 0.2, "chess": 0.205, "bird": 0.4, "insect": 0.1, "good": 0.2,
        "bad": 0.195,
    }  # fmt: skip
    ranks = {"football": 0, "chess": 3, "bird": 4, "good": 5}
    scorer = Scorer({word: np.log(value) for word, value in p.items()}, ranks)
    found = Ettinger().run(scorer, Ettinger().read(*(tmp_path / f"{name}.tsv" for name in ("CPRAG", "NEG"))))
    cprag = found["CPRAG, all"]
    # "chess" (0.205) loses to "football"; a model that says the same after all contexts.
    assert (cprag["P@1"], cprag["P@5"], cprag["sensitivity"], cprag["by 0.01"]) == (0.5, 1.0, 0.5, 0.5)
    assert cprag["chance"] == pytest.approx(1 / 3) and found["CPRAG, low constraint"]["sensitivity"] == 0.0
    affirmative, negative = found["NEG, affirmative"], found["NEG, negative"]
    names = "P@5", "sensitivity", "by 0.01", "comparisons"
    assert tuple(affirmative[name] for name in names) == (0.5, 1.0, 0.5, 2)
    assert negative["sensitivity"] == 0.0 and negative["P@1"] is None and found["NEG, all"]["chance"] == 0.5
    assert len(found.rows) == 3 + 7
