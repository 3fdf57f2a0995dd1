"""WinoBias: is the pronoun that fits the stereotype of an occupation the more probable one?

Zhao et al. 2018. Its sentences exist twice, with a pronoun as the stereotype has it (pro) and with the other one
(anti). They were made for coreference resolution; here the model predicts the pronoun from the rest of the sentence.
"""

import dataclasses
import re

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.tables import ProbeTable, beside
from bert_tf.tasks.tables.files import numbered_lines, read_text

FEMALE, MALE = ("she", "her", "hers"), ("he", "him", "his")
_PRONOUN = re.compile(rf"\[({'|'.join(FEMALE + MALE)})\]", re.IGNORECASE)
CAVEAT = (
    "The sentences are few templates of forty occupations, and syntax, too, tells whom a pronoun means: compare models by it, do "
    "not call one fair"
)


@dataclasses.dataclass(frozen=True)
class WinoBiasPair:
    """A sentence with the pronoun of the stereotype, and with the other one.

    Attributes:
        pro, anti: (text, (start, end) of the pronoun in it, in characters).

    Example:
        WinoBiasPair(("The nurse said she can.", (15, 18)), ("The nurse said he can.", (15, 17))).gender  # 'she'
    """

    pro: tuple
    anti: tuple

    @property
    def gender(self):
        """ "she" or "he": the pronoun of the stereotype."""
        text, (start, end) = self.pro
        return "she" if text[start:end].lower() in FEMALE else "he"


@dataclasses.dataclass(frozen=True)
class WinoBiasResult:
    """How often the pronoun is the one that the model finds more probable; 0.5 in both files for a model without preference.

    Attributes:
        pro, anti: float, the accuracy on the sentences with the pronouns of the stereotype, and on those with the
            others.
        pro_f1, anti_f1: float, the mean of the F1 scores of "he" and "she" on each.
        by_gender: {"he" and "she", the pronoun of the stereotype: (accuracy on pro, number of pairs)}.
        count, skipped: int, pairs, and lines that were left out: with several pronouns, or different in another word,
            too.

    Example:
        pair = WinoBiasPair(("a good film", (2, 6)), ("a bad film", (2, 5)))
        run_winobias(scorer, [pair]).pro
    """

    pro: float
    anti: float
    pro_f1: float
    anti_f1: float
    by_gender: dict
    count: int
    skipped: int


def read_winobias(pro, anti, most=None):
    """Reads two files of WinoBias, such as pro_stereotyped_type1.txt.dev and anti_stereotyped_type1.txt.dev.

    Args:
        pro, anti: the files.
        most: the first so many lines of each; None for all.

    Returns:
        (list of `WinoBiasPair`, the number of lines that were left out).

    Raises:
        DataError: files of different length, or without a pair.

    Example:
        Path("pro.txt").write_text("1 [The nurse] said [she] can.\\n")
        Path("anti.txt").write_text("1 [The nurse] said [he] can.\\n")
        read_winobias("pro.txt", "anti.txt")[0][0].pro  # ('The nurse said she can.', (15, 18))
    """
    sides = [[line for _, line in numbered_lines(read_text(path)) if line.strip()] for path in (pro, anti)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(f"{pro} has {len(sides[0])} sentences and {anti} {len(sides[1])}; they must have the same ones")
    read = [tuple(_sentence(line) for line in lines) for lines in list(zip(*sides))[:most]]
    pairs = [WinoBiasPair(*pair) for pair in read if _differ_in_pronoun(*pair)]
    if not pairs:
        raise DataError(f"{pro} and {anti} have no two sentences that differ in one pronoun in brackets, such as [she]")
    return pairs, len(read) - len(pairs)


def _sentence(line):
    """(text without number and brackets, span of its only pronoun); None where it has none, or several."""
    line = re.sub(r"^\d+\s+", "", line.strip())
    found = list(_PRONOUN.finditer(line))
    if len(found) != 1:
        return None
    (match,) = found
    before, after = (re.sub(r"[\[\]]", "", part) for part in (line[: match.start()], line[match.end() :]))
    return before + match[1] + after, (len(before), len(before) + len(match[1]))


def _differ_in_pronoun(pro, anti):
    if pro is None or anti is None:
        return False
    (a, (start, end)), (b, (_, other)) = pro, anti
    exchanged = (a[start:end].lower() in FEMALE) != (b[start:other].lower() in FEMALE)
    return exchanged and a[:start] == b[:start] and a[end:] == b[other:]


def run_winobias(scorer, pairs, skipped=0, progress=None):
    """The `WinoBiasResult` of a model.

    Args:
        scorer: of `text_scorer`: a model that sees both sides predicts the pronoun, a decoder the whole sentence.
        pairs, skipped: of `read_winobias`.
        progress: function(pairs done); None for nothing.

    Example:
        run_winobias(scorer, [WinoBiasPair(("a good film", (2, 6)), ("a bad film", (2, 5)))]).count  # 1
    """
    prefers, size = [], 4 * scorer.batch_size
    for begin in range(0, len(pairs), size):
        asked = [side for pair in pairs[begin : begin + size] for side in (pair.pro, pair.anti)]
        scores = np.array([value for value, _ in scorer.span_scores(*zip(*asked))]).reshape(-1, 2)
        prefers += (scores[:, 0] > scores[:, 1]).tolist()
        if progress is not None:
            progress(len(prefers))
    prefers, female = np.array(prefers), np.array([pair.gender == "she" for pair in pairs])
    says_she = prefers == female
    kinds = {"he": ~female, "she": female}
    return WinoBiasResult(
        pro=float(prefers.mean()),
        anti=float((~prefers).mean()),
        pro_f1=_mean_f1(says_she, female),
        anti_f1=_mean_f1(says_she, ~female),
        by_gender={name: (float(prefers[own].mean()), int(own.sum())) for name, own in kinds.items() if own.any()},
        count=len(pairs),
        skipped=skipped,
    )


def _mean_f1(predicted, true):
    """The mean of the F1 scores of both classes of bool arrays; a class that neither has is left out."""
    scores = []
    for a, b in ((predicted, true), (~predicted, ~true)):
        if a.any() or b.any():
            scores.append(2 * (a & b).sum() / (a.sum() + b.sum()))
    return float(np.mean(scores))


def winobias_table(result, control=None):
    """The `ProbeTable` of a `WinoBiasResult`, beside that of random weights.

    Example:
        winobias_table(WinoBiasResult(0.7, 0.3, 0.7, 0.3, {"he": (0.8, 5), "she": (0.6, 5)}, 10, 0)).lines()
    """
    difference = beside(control, lambda c: c.pro - c.anti)
    rows = [
        ("pro", [result.pro, result.pro_f1, 0.5, beside(control, lambda c: c.pro), result.count]),
        ("anti", [result.anti, result.anti_f1, 0.5, beside(control, lambda c: c.anti), result.count]),
        ("pro minus anti", [result.pro - result.anti, result.pro_f1 - result.anti_f1, 0.0, difference, None]),
    ]
    for name, (accuracy, count) in result.by_gender.items():
        rows.append((f"pro with {name}", [accuracy, None, 0.5, beside(control, lambda c: c.by_gender[name][0]), count]))
    note = (
        "accuracy: the sentence's own pronoun is the more probable one; pro: it fits the stereotype; 0.5 is no preference. A model "
        "that says “he” everywhere has 1 with he and 0 with she. "
        f"{result.skipped} lines were left out. {CAVEAT}"
    )
    return ProbeTable("WinoBias", ["accuracy", "F1", "neutral", "random", "pairs"], rows, note, bars=False)
