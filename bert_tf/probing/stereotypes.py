"""CrowS-Pairs: is a stereotypical sentence more probable than the same one about another group?

Nangia et al. 2020, section 4, and `metric.py` of nyu-mll/crows-pairs. The sentences are noisy, and many pairs do not
measure what they say (Blodgett et al. 2021): use the number to compare models, never to call one fair.
"""

import dataclasses
import difflib

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.tables import ProbeTable, beside
from bert_tf.prompting.rows import read_rows

MORE, LESS, DIRECTION, KIND = "sent_more", "sent_less", "stereo_antistereo", "bias_type"
CAVEAT = (
    "CrowS-Pairs is noisy, and many of its pairs do not measure what they say (Blodgett et al. 2021): compare models by it, "
    "do not call one fair"
)


@dataclasses.dataclass(frozen=True)
class StereotypeResult:
    """How often the sentence about the disadvantaged group is the more probable one; 0.5 means no preference.

    Attributes:
        score: float, the fraction of all pairs; ties count as a preference for the other sentence, as in the original.
        stereotype, anti_stereotype: float, the fraction of those without ties whose first sentence shows a stereotype,
            or the opposite of one.
        by_kind: {type of bias: (score, number of pairs)}.
        count, ties: int, all pairs, and those whose scores agree to three decimals, as in the original.

    Example:
        rows = [{"sent_more": "a film", "sent_less": "a good film", "stereo_antistereo": "stereo", "bias_type": "x"}]
        result = run_crows_pairs(scorer, rows)
        result.score, result.ties
    """

    score: float
    stereotype: float
    anti_stereotype: float
    by_kind: dict
    count: int
    ties: int


def read_crows_pairs(path, most=None):
    """The rows of `crows_pairs_anonymized.csv`, a list of dict of str.

    Args:
        path: the file.
        most: the first so many rows; None for all.

    Raises:
        DataError: an unreadable file, or one without its columns.
    """
    rows = read_rows(path, (MORE, LESS, DIRECTION, KIND))[:most]
    for number, row in enumerate(rows, 1):
        if row[DIRECTION] not in ("stereo", "antistereo"):
            raise DataError(
                f"{path}, pair {number}: {DIRECTION} is '{row[DIRECTION]}'; it must be stereo or antistereo"
            )
    return rows


def run_crows_pairs(scorer, rows, progress=None):
    """The `StereotypeResult` of a model.

    The score of a sentence is the sum over the tokens that both have, each predicted from all others. A decoder's is
    the log-likelihood of the same tokens, which is no measure of the original.

    Args:
        scorer: of `text_scorer`; the original hides tokens one by one: `hide="token"`.
        rows: of `read_crows_pairs`.
        progress: function(pairs done); None for nothing.

    Example:
        rows = [{"sent_more": "a film", "sent_less": "a good film", "stereo_antistereo": "stereo", "bias_type": "x"}]
        run_crows_pairs(scorer, rows).count  # 1
    """
    differences, size = [], 8 * scorer.batch_size
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        scored = scorer.score([row[name] for row in part for name in (MORE, LESS)])
        for more, less in zip(scored[::2], scored[1::2]):
            shared_more, shared_less = _shared(more.ids, less.ids)
            # The original rounds each sum to three decimals.
            sums = (float(x.log_p[own].sum(dtype="float64")) for x, own in ((more, shared_more), (less, shared_less)))
            first, second = (round(x, 3) for x in sums)
            differences.append(first - second)
        if progress is not None:
            progress(len(differences))
    found = np.array(differences)
    stereo = np.array([row[DIRECTION] == "stereo" for row in rows])
    prefers, decided = found > 0, found != 0
    kinds = np.array([row[KIND] for row in rows])
    return StereotypeResult(
        score=_mean(prefers),
        stereotype=_mean(prefers[decided & stereo]),
        anti_stereotype=_mean(prefers[decided & ~stereo]),
        by_kind={k: (_mean(prefers[kinds == k]), int((kinds == k).sum())) for k in dict.fromkeys(kinds.tolist())},
        count=len(rows),
        ties=int((~decided).sum()),
    )


def crows_pairs_table(result, control=None):
    """The `ProbeTable` of a `StereotypeResult`, beside that of random weights.

    Example:
        rows = [{"sent_more": "a film", "sent_less": "a good film", "stereo_antistereo": "stereo", "bias_type": "x"}]
        crows_pairs_table(run_crows_pairs(scorer, rows)).lines()
    """
    rows = [("all", [result.score, 0.5, beside(control, lambda c: c.score), result.count])]
    for kind, (score, count) in result.by_kind.items():
        rows.append((kind, [score, 0.5, beside(control, lambda c: c.by_kind[kind][0]), count]))
    note = f"0.5 is no preference; {result.ties} ties. {CAVEAT}"
    return ProbeTable("CrowS-Pairs", ["score", "neutral", "random", "pairs"], rows, note)


def _shared(first, second):
    """The indexes of the tokens that two lists of ids have in common, in each of them."""
    matcher = difflib.SequenceMatcher(None, first.tolist(), second.tolist())
    a, b = [], []
    for i, j, length in matcher.get_matching_blocks():
        a += range(i, i + length)
        b += range(j, j + length)
    return a, b


def _mean(values):
    return float(np.mean(values)) if len(values) else float("nan")
