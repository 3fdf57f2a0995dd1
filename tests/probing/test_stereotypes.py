"""CrowS-Pairs: which tokens count, and the three numbers of the original."""

import numpy as np
import pytest
from fakes import FakeScorer

from bert_tf.errors import DataError
from bert_tf.probing import ScoredText, read_crows_pairs, run_crows_pairs

ROWS = "sent_more,sent_less,stereo_antistereo,bias_type\n{}"


def test_only_tokens_that_both_sentences_have_count():
    class Scorer:
        batch_size = 4

        def score(self, texts):
            given = {"more": ([1, 2, 3, 4], [-1, -9, -1, -2]), "less": ([1, 7, 8, 3, 4], [-1, -1, -1, -1, -2.5])}
            pairs = map(given.get, texts)
            return [ScoredText(np.array(ids), None, None, np.array(p, np.float32), None) for ids, p in pairs]

    row = {"sent_more": "more", "sent_less": "less", "stereo_antistereo": "stereo", "bias_type": "age"}
    found = run_crows_pairs(Scorer(), [row])  # 1, 3, 4 are shared: -4 against -4.5
    assert (found.score, found.ties) == (1.0, 0)


def test_numbers(tmp_path):
    lines = ["p x,q x,stereo,age", "q x,p x,stereo,age", "p x,q x,antistereo,religion", "x p,x p,stereo,religion"]
    (tmp_path / "a.csv").write_text(ROWS.format("\n".join(lines) + "\n"))
    rows = read_crows_pairs(tmp_path / "a.csv")

    class Scorer(FakeScorer):
        """Says that "x" after "p" is more probable than after "q"."""

        def score(self, texts):
            found = super().score(texts)
            for text, one in zip(texts, found):
                one.log_p[:] = -2.0 if text.startswith("q") else -1.0
            return found

    found = run_crows_pairs(Scorer({}), rows)
    assert (found.score, found.ties, found.count) == (0.5, 1, 4), "the original counts ties among all pairs"
    assert (found.stereotype, found.anti_stereotype) == (0.5, 1.0)
    assert found.by_kind == {"age": (0.5, 2), "religion": (0.5, 2)}
    (tmp_path / "a.csv").write_text(ROWS.format("a,b,other,age\n"))
    with pytest.raises(DataError, match="pair 1: stereo_antistereo is 'other'; it must be stereo or antistereo"):
        read_crows_pairs(tmp_path / "a.csv")
