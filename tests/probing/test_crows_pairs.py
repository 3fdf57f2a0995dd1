"""CrowS-Pairs: which tokens count, and the three numbers of the original."""

import numpy as np
import pytest
from fakes import FakeScorer

from bert_tf.errors import DataError
from bert_tf.probing import CrowsPairs, Question, ScoredText

ROWS = "sent_more,sent_less,stereo_antistereo,bias_type\n{}"


def test_only_tokens_that_both_sentences_have_count():
    class Scorer:
        batch_size = 4

        def score(self, texts):
            given = {"more": ([1, 2, 3, 4], [-1, -9, -1, -2]), "less": ([1, 7, 8, 3, 4], [-1, -1, -1, -1, -2.5])}
            pairs = map(given.get, texts)
            return [ScoredText(np.array(ids), None, None, np.array(p, np.float32), None) for ids, p in pairs]

    question = Question(("all",), ("more", "less"), facts={"direction": "stereotype"})
    found = CrowsPairs().run(Scorer(), [question])  # 1, 3, 4 are shared: -4 against -4.5
    assert (found["all"]["score"], found.facts["ties"]["all"]) == (1.0, 0)


def test_numbers(tmp_path):
    lines = ["p x,q x,stereo,age", "q x,p x,stereo,age", "p x,q x,antistereo,religion", "x p,x p,stereo,religion"]
    (tmp_path / "a.csv").write_text(ROWS.format("\n".join(lines) + "\n"))
    rows = CrowsPairs().read(tmp_path / "a.csv")

    class Scorer(FakeScorer):
        """Says that "x" after "p" is more probable than after "q"."""

        def score(self, texts):
            found = super().score(texts)
            for text, one in zip(texts, found):
                one.log_p[:] = -2.0 if text.startswith("q") else -1.0
            return found

    found = CrowsPairs().run(Scorer({}), rows)
    assert found.facts["ties"]["all"] == 1 and "; 1 ties" in found.note
    assert [found.facts[name]["all"] for name in ("stereotype", "anti_stereotype")] == [0.5, 1.0]
    numbers = {name: (own["score"], own["pairs"]) for name, own in found.numbers()["rows"].items()}
    counted = {"all": (0.5, 4), "age": (0.5, 2), "religion": (0.5, 2)}
    assert numbers == counted, "the original counts ties among all pairs"
    (tmp_path / "a.csv").write_text(ROWS.format("a,b,other,age\n"))
    with pytest.raises(DataError, match="line 2: stereo_antistereo is 'other'; it must be stereo or antistereo"):
        CrowsPairs().read(tmp_path / "a.csv")
