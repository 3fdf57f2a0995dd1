"""Ettinger's files: CPRAG-102, ROLE-88 and NEG-136, by their columns (Ettinger 2020; aetting/lm-diagnostics)."""

import dataclasses
import re
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.prompting.rows import read_rows


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """The questions of one file.

    Attributes:
        name: str, of the file.
        predictions: list of (kinds, context, words): which word comes after the context? Each of the words is right.
        comparisons: list of (kinds, (context, word), others): is the word more probable after its context than each of
            the other words after theirs, a list of (context, word)?

    Example:
        Diagnostic("own", [(("all",), "a good", ("film",))], [(("all",), ("a good", "film"), [("a good", "paris")])])
    """

    name: str
    predictions: list
    comparisons: list


def read_diagnostic(path, most=None):
    """Reads a TSV file of Ettinger's.

    Args:
        path: the file.
        most: the first so many predictions and comparisons; None for all.

    Returns:
        `Diagnostic`.

    Raises:
        DataError: an unreadable file, or one with other columns.

    Example:
        header = "item\\tcontext_aff\\tcontext_neg\\ttarget_aff\\ttarget_neg\\n"
        Path("neg.tsv").write_text(header + "0\\tA robin is (a|an)\\tA robin is not (a|an)\\tbird\\ttree\\n")
        read_diagnostic("neg.tsv").comparisons[0][1]  # ('A robin is a', 'bird')
    """
    rows = read_rows(path)
    for columns, questions in _FORMATS:
        if columns <= rows[0].keys():
            predictions, comparisons = questions(rows)
            if not all(word for _, right, others in comparisons for _, word in (right, *others)):
                raise DataError(
                    f"{path}: a row lacks one of the words {', '.join(sorted(columns))}; complete it, or leave it out"
                )
            unique = {(context, words): (kinds, context, words) for kinds, context, words in predictions}
            return Diagnostic(Path(path).stem, list(unique.values())[:most], comparisons[:most])
    raise DataError(f"{path} has the columns {', '.join(rows[0])}; it must be a file of CPRAG-102, ROLE-88 or NEG-136")


def _cprag(rows):
    predictions, comparisons = [], []
    for row in rows:
        context = f"{row['context_s1'].strip()} {row['context_s2'].strip()}"
        kinds = (
            "all",
            {"H": "high constraint", "L": "low constraint"}.get(row["constraint"].strip(), row["constraint"]),
        )
        others = [(context, row[name].strip()) for name in ("within_category", "between_category")]
        predictions.append((("all",), context, (row["expected"].strip(),)))
        comparisons.append((kinds, (context, row["expected"].strip()), others))
    return predictions, comparisons


def _role(rows):
    sides, predictions = {}, []
    for row in rows:
        context = row["context"].strip()
        # The authors' code takes the first word of an answer of several.
        words = tuple(word.split()[0] for word in row["expected"].split("|") if word.strip())
        predictions.append((("all",), context, words))
        number, _, side = row["item"].partition("-")
        sides.setdefault(number, {})[side] = (context, row["target"].partition(" ")[0])
    return predictions, [(("all",), own["a"], [own["b"]]) for own in sides.values() if own.keys() >= {"a", "b"}]


def _negation(rows):
    predictions, comparisons = [], []
    for row in rows:
        licensed = {"Y": ("natural",), "N": ("less natural",)}.get(row.get("licensing", "").strip(), ())
        true, false = row["target_aff"].strip(), row["target_neg"].strip()
        for side, right, wrong in (("affirmative", true, false), ("negative", false, true)):
            own, other = (_with_article(row[f"context_{side[:3]}"], word) for word in (right, wrong))
            kinds = ("all", side, *(f"{side}, {name}" for name in licensed))
            comparisons.append((kinds, (own, right), [(other, wrong)]))
            if side == "affirmative":
                predictions.append((("affirmative",), own, (right,)))
    return predictions, comparisons


def _with_article(context, word):
    return re.sub(r"\s*\(a\|an\)\s*$", " an" if word[:1] in "aeiou" else " a", context.strip())


#: (columns of a file, function(rows) -> (predictions, comparisons)).
_FORMATS = [
    ({"context_s1", "context_s2", "expected", "within_category", "between_category", "constraint"}, _cprag),
    ({"item", "context", "expected", "target"}, _role),
    ({"context_aff", "context_neg", "target_aff", "target_neg"}, _negation),
]
