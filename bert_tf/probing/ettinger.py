"""What a model expects after a context, and whether it heeds roles, events and negation.

Ettinger 2020 (What BERT is not), sections 5 to 7, and the authors' code (aetting/lm-diagnostics).
"""

import dataclasses

import numpy as np

from bert_tf.probing.tables import ProbeTable, beside

#: What the probability of the right word must be larger by in the stricter test.
THRESHOLD = 0.01


@dataclasses.dataclass(frozen=True)
class DiagnosticResult:
    """How a model answers the questions of one kind.

    Attributes:
        p_at_1, p_at_5: float, the prediction accuracy: a right word is among the 1 or 5 most probable tokens; nan where
            the kind has no predictions.
        sensitivity: float, how often the right word is more probable than each of the others.
        strict: float, the same where its probability must be larger by 0.01.
        chance: float, the sensitivity of random probabilities.
        count: int, comparisons.

    Example:
        questions = Diagnostic("own", [(("all",), "a good", ("film",))], [(("all",), ("a good", "film"), [("a good", "paris")])])
        run_diagnostics(scorer, [questions])["own, all"].sensitivity
    """

    p_at_1: float
    p_at_5: float
    sensitivity: float
    strict: float
    chance: float
    count: int


def run_diagnostics(scorer, diagnostics, progress=None):
    """{"file, kind": `DiagnosticResult`} of a model.

    A full stop follows the word, as in the authors' code; a decoder does not see it. The probability of a word of
    several tokens is their product, and no prediction finds it.

    Args:
        scorer: of `text_scorer`.
        diagnostics: list of `Diagnostic`.
        progress: function(words done, all); None for nothing.

    Example:
        questions = Diagnostic("own", [], [(("all",), ("a good", "film"), [("a good", "paris")])])
        run_diagnostics(scorer, [questions])["own, all"].chance  # 0.5
    """
    asked = {}
    for one in diagnostics:
        asked |= {(context, word): None for _, context, words in one.predictions for word in words}
        asked |= {place: None for _, right, others in one.comparisons for place in (right, *others)}
    places, size = list(asked), 4 * scorer.batch_size
    for begin in range(0, len(places), size):
        part = places[begin : begin + size]
        texts = [f"{context} {word}." for context, word in part]
        spans = [(len(context) + 1, len(context) + 1 + len(word)) for context, word in part]
        for place, (_, found) in zip(part, scorer.span_scores(texts, spans)):
            asked[place] = (
                float(np.exp(found.log_likelihood)),
                int(found.ranks[0]) + 1 if len(found.ranks) == 1 else np.inf,
            )
        if progress is not None:
            progress(begin + len(part), len(places))
    results = {}
    for one in diagnostics:
        for kind in dict.fromkeys(kind for kinds, *_ in one.comparisons for kind in kinds):
            results[f"{one.name}, {kind}"] = _result(one, kind, asked)
    return results


def _result(diagnostic, kind, asked):
    predictions = [(context, words) for kinds, context, words in diagnostic.predictions if kind in kinds]
    ranks = np.array([min(asked[context, word][1] for word in words) for context, words in predictions])
    comparisons = [(right, others) for kinds, right, others in diagnostic.comparisons if kind in kinds]
    margins = np.array([asked[right][0] - max(asked[place][0] for place in others) for right, others in comparisons])
    return DiagnosticResult(
        p_at_1=float(np.mean(ranks <= 1)) if len(ranks) else float("nan"),
        p_at_5=float(np.mean(ranks <= 5)) if len(ranks) else float("nan"),
        sensitivity=float(np.mean(margins > 0)),
        strict=float(np.mean(margins > THRESHOLD)),
        chance=float(np.mean([1 / (1 + len(others)) for _, others in comparisons])),
        count=len(comparisons),
    )


def diagnostics_table(results, control=None):
    """The `ProbeTable` of what `run_diagnostics` returns, beside that of random weights.

    Example:
        diagnostics_table({"ROLE-88, all": DiagnosticResult(0.1, 0.3, 0.7, 0.4, 0.5, 44)}).lines()
    """
    rows = []
    for name, found in results.items():
        random = beside(control, lambda c: c[name].sensitivity)
        rows.append(
            (name, [found.sensitivity, found.chance, random, found.strict, found.p_at_1, found.p_at_5, found.count])
        )
    note = (
        "sensitivity: the right word is more probable than the wrong ones, or than itself with exchanged roles; by 0.01: by more "
        "than that; P@1, P@5: an expected word is among the most probable tokens"
    )
    return ProbeTable(
        "Ettinger's tests", ["sensitivity", "chance", "random", "by 0.01", "P@1", "P@5", "comparisons"], rows, note
    )
