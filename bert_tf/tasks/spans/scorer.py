"""The official scorers of question answering: SQuAD 1.1 and 2.0, TriviaQA, and KorQuAD 1.0.

Formulas of SQuAD's `evaluate-v1.1.py` and `evaluate-v2.0.py`, TriviaQA's `triviaqa_evaluation.py` (as
`t5/evaluation/qa_utils.py` has it) and KorQuAD's `evaluate-korquad_v1.0.py`; here all scores are fractions, there they
are percent.
"""

import collections
import dataclasses
import re
import string

import numpy as np

#: The threshold of questions whose `null_odds` are 0.
SMALLEST = 5e-324

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TRIVIA_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´", " "))
_MARKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def normalize_squad(text):
    """In lower case, without ASCII punctuation, articles and further white space."""
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_PUNCTUATION)).split())


def normalize_triviaqa(text):
    """In lower case, punctuation and typographic quotation marks as spaces, without articles and further white space."""
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_TRIVIA_PUNCTUATION)).split())


def normalize_korquad(text):
    """In lower case, brackets and quotation marks as spaces, without other ASCII punctuation and further white space."""
    return " ".join(text.translate(_MARKS).lower().translate(_PUNCTUATION).split())


@dataclasses.dataclass(frozen=True)
class Scorer:
    """How texts are compared.

    Attributes:
        normalize: function from text to text; texts are an exact match where it gives the same.
        units: function from a normalized text to the list of what F1 is computed over.
    """

    normalize: object
    units: object


SCORERS = {
    "squad": Scorer(normalize_squad, str.split),
    "triviaqa": Scorer(normalize_triviaqa, str.split),
    "korquad": Scorer(normalize_korquad, lambda text: list(text.replace(" ", ""))),
}


def f1(target, text, empty_equal=False):
    """F1 of two lists as bags. `empty_equal`: where one of them is empty, whether both are (SQuAD 2.0); else 0."""
    if empty_equal and not (target and text):
        return float(target == text)
    same = sum((collections.Counter(target) & collections.Counter(text)).values())
    return 2 * same / (len(target) + len(text)) if same else 0.0


def raw_scores(accepted, texts, scorer="squad", impossible=False):
    """The exact match and the F1 of each question, the largest over its accepted answers.

    Args:
        accepted: for each question a list or tuple of str, its accepted answers.
        texts: list of str, or None for a question without a prediction.
        scorer: a name of `SCORERS`.
        impossible: score as SQuAD 2.0: an accepted answer without a word is none, and a question without an accepted
            answer is answered by "". Otherwise as SQuAD 1.1.

    Returns:
        Two float64 arrays [N]. A question without a prediction is 0 in SQuAD 1.1, and nan in SQuAD 2.0, which leaves it
        out.
    """
    how, scores = SCORERS[scorer], np.zeros((2, len(texts)))
    for index, (answers, text) in enumerate(zip(accepted, texts, strict=True)):
        if text is None:
            scores[:, index] = np.nan if impossible else 0.0
            continue
        targets = [how.normalize(target) for target in answers]
        if impossible:
            targets = [target for target in targets if target] or [""]
        text = how.normalize(text)
        units = how.units(text)
        scores[0, index] = max(target == text for target in targets)
        scores[1, index] = max(f1(how.units(target), units, impossible) for target in targets)
    return scores


def best_threshold(scores, null_odds, has_answer, texts):
    """The highest mean score over all thresholds of "no answer", and the first threshold that gives it.

    `find_best_thresh` of evaluate-v2.0.py: from the threshold at which all questions have no answer upwards, to each
    question's `null_odds`. Where no threshold is better than "no answer" for all, it is 0; a question's `null_odds` of 0 is
    the smallest float above it, which decides the same.

    Args:
        scores: float [N], of the texts, the best that are not "".
        null_odds: float [N]: the larger, the more likely there is no answer.
        has_answer: bool [N], whether the question has one.
        texts: list of str.

    Returns:
        (mean score, threshold), floats.
    """
    answered = ~np.isnan(scores)
    gains = np.where(has_answer, scores, -np.array([bool(text) for text in texts], float))
    order = np.argsort(null_odds, kind="stable")
    order = order[answered[order]]
    nothing = float(np.sum(~has_answer))
    totals = nothing + np.cumsum(gains[order])
    best = int(np.argmax(totals)) if len(totals) else 0
    if not len(totals) or totals[best] <= nothing:
        return nothing / max(int(answered.sum()), 1), 0.0
    return float(totals[best]) / int(answered.sum()), float(np.asarray(null_odds)[order[best]]) or SMALLEST


def scores_without_impossible(answers, texts, scorer="squad"):
    """{"em", "f1"} as SQuAD 1.1 and KorQuAD have them, of a list of `Answers`; other arguments as of `raw_scores`."""
    em, f1_scores = raw_scores([one.texts for one in answers], texts, scorer)
    return {"em": float(em.mean()), "f1": float(f1_scores.mean())}


def scores_with_impossible(answers, texts, null_odds, threshold, scorer="squad"):
    """The scores of SQuAD 2.0.

    Args:
        answers: list of `Answers`.
        scorer: of `raw_scores`.
        texts: for each question the best answer that is not "", whatever its `null_odds`; None for no prediction.
        null_odds: float [N]; above `threshold` the answer is "".
        threshold: float.

    Returns:
        dict of floats: `em`, `f1`; the same with `has_answer_` and `no_answer_` of those questions, where there are
        some; `best_em`, `best_em_threshold`, `best_f1`, `best_f1_threshold`, see `best_threshold`.
    """
    # As evaluate-v2.0.py has it: whether the file has answers, normalized or not.
    has_answer = np.array([bool(one.texts) for one in answers])
    null_odds = np.asarray(null_odds, np.float64)
    raw = raw_scores([one.texts for one in answers], texts, scorer, impossible=True)
    answered = ~np.isnan(raw[0])
    decided = np.where((null_odds > threshold) & answered, (~has_answer).astype(float), raw)
    result = {}
    for name, chosen in (
        ("", answered),
        ("has_answer_", answered & has_answer),
        ("no_answer_", answered & ~has_answer),
    ):
        if chosen.any():
            result |= {f"{name}em": float(decided[0, chosen].mean()), f"{name}f1": float(decided[1, chosen].mean())}
    for name, scores in zip(("em", "f1"), raw):
        best, at = best_threshold(scores, null_odds, has_answer, texts)
        result |= {f"best_{name}": best, f"best_{name}_threshold": at}
    return result
