"""What a model expects after a context, and whether it heeds roles, events and negation.

Ettinger 2020 (What BERT is not), sections 5 to 7, and the authors' code and files (aetting/lm-diagnostics): CPRAG-102,
ROLE-88 and NEG-136.
"""

import re
from pathlib import Path

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.likelihood.engine import LikelihoodProbe, Question
from bert_tf.tasks.rows.opening import read_dicts

#: What the probability of the right word must be larger by in the stricter test.
THRESHOLD = 0.01


class Ettinger(LikelihoodProbe):
    """Is the right word more probable than the wrong ones, and is it expected? Rows for each file and kind of question.

    "sensitivity": how often the right word is more probable than each of the others; "by 0.01": the same where its
    probability must be larger by 0.01; "chance": the sensitivity of random probabilities. "P@1", "P@5", the prediction
    accuracy: a right word is among the 1 or 5 most probable tokens; unknown where the kind has no predictions. A full stop
    follows the word, as in the authors' code; a decoder does not see it. The probability of a word of several tokens is
    their product, and no prediction finds it.

    Example:
        table = Ettinger().run(scorer, [expectation(["own, all"], (("a good", "film"), ("a good", "paris")))])
        table["own, all"]["chance"]  # 0.5
    """

    name, title = "ettinger", "Ettinger's tests"
    columns = ("sensitivity", "chance", "random", "by 0.01", "P@1", "P@5", "comparisons")
    note = "sensitivity: the right word is more probable; by 0.01: by more than that; P@1, P@5: among the tokens"

    def read(self, path, *others, most=None):
        """Reads TSV files of Ettinger's.

        Args:
            path, others: the files.
            most: the first so many predictions and comparisons of each; None for all.

        Returns:
            list of `Question` of `expectation`.

        Raises:
            DataError: an unreadable file, or one with other columns.

        Example:
            header = "item\\tcontext_aff\\tcontext_neg\\ttarget_aff\\ttarget_neg\\n"
            Path("neg.tsv").write_text(header + "0\\tA robin is (a|an)\\tA robin is not (a|an)\\tbird\\ttree\\n")
            Ettinger().read("neg.tsv")[0].texts  # ('A robin is a bird.', 'A robin is a tree.')
        """
        questions = []
        for file in (path, *others):
            rows, name = read_dicts(file), Path(file).stem
            columns, ask = next((form for form in _FORMATS if form[0] <= rows[0].keys()), (None, None))
            if ask is None:
                raise DataError(f"{file} is not of CPRAG-102, ROLE-88 or NEG-136; it has {', '.join(rows[0])}")
            predictions, comparisons = ask(rows)
            if not all(places and all(word for _, word in places) for _, places in (*comparisons, *predictions)):
                raise DataError(f"{file}: a row lacks one of {', '.join(sorted(columns))}; leave it out")
            unique = {places: (kinds, places) for kinds, places in predictions}
            for some, is_prediction in ((comparisons, False), (list(unique.values()), True)):
                for kinds, places in some[:most]:
                    questions.append(expectation([f"{name}, {kind}" for kind in kinds], places, is_prediction))
        return questions

    def answer(self, question, scores):
        if question.facts["is_prediction"]:
            rank = min(int(text.ranks[0]) + 1 if len(text.ranks) == 1 else np.inf for _, text in scores)
            return {"P@1": rank <= 1, "P@5": rank <= 5}
        right, *others = (float(np.exp(text.log_likelihood)) for _, text in scores)
        margin = right - max(others)
        return {"sensitivity": margin > 0, "by 0.01": margin > THRESHOLD, "chance": 1 / len(scores)}


def expectation(groups, places, is_prediction=False):
    """The `Question` of words after contexts.

    Args:
        groups: list of str.
        places: tuple of (context, word). Is the first word more probable after its context than each of the others after
            theirs?
        is_prediction: asked is instead whether one of the words is among the most probable tokens.

    Example:
        expectation(["own, all"], (("a good", "film"), ("a good", "paris"))).texts[0]  # 'a good film.'
    """
    texts = tuple(f"{context} {word}." for context, word in places)
    spans = tuple((len(context) + 1, len(context) + 1 + len(word)) for context, word in places)
    return Question(tuple(groups), texts, spans, {"is_prediction": is_prediction})


def _cprag(rows):
    predictions, comparisons = [], []
    for row in rows:
        context = f"{row['context_s1'].strip()} {row['context_s2'].strip()}"
        constraint = {"H": "high constraint", "L": "low constraint"}.get(row["constraint"].strip(), row["constraint"])
        names = ("expected", "within_category", "between_category")
        places = tuple((context, row[name].strip()) for name in names)
        predictions.append((("all",), places[:1]))
        comparisons.append((("all", constraint), places))
    return predictions, comparisons


def _role(rows):
    sides, predictions = {}, []
    for row in rows:
        context = row["context"].strip()
        # The authors' code takes the first word of an answer of several.
        words = (word.split()[0] for word in row["expected"].split("|") if word.strip())
        predictions.append((("all",), tuple((context, word) for word in words)))
        number, _, side = row["item"].partition("-")
        sides.setdefault(number, {})[side] = (context, row["target"].partition(" ")[0])
    return predictions, [(("all",), (side["a"], side["b"])) for side in sides.values() if side.keys() >= {"a", "b"}]


def _negation(rows):
    predictions, comparisons = [], []
    for row in rows:
        licensed = {"Y": ("natural",), "N": ("less natural",)}.get(row.get("licensing", "").strip(), ())
        true, false = row["target_aff"].strip(), row["target_neg"].strip()
        for side, words in (("affirmative", (true, false)), ("negative", (false, true))):
            places = tuple((_with_article(row[f"context_{side[:3]}"], word), word) for word in words)
            comparisons.append((("all", side, *(f"{side}, {name}" for name in licensed)), places))
            if side == "affirmative":
                predictions.append((("affirmative",), places[:1]))
    return predictions, comparisons


def _with_article(context, word):
    return re.sub(r"\s*\(a\|an\)\s*$", " an" if word[:1] in "aeiou" else " a", context.strip())


#: (columns of a file, function(rows) -> (predictions, comparisons): lists of (kinds, places)).
_FORMATS = [
    ({"context_s1", "context_s2", "expected", "within_category", "between_category", "constraint"}, _cprag),
    ({"item", "context", "expected", "target"}, _role),
    ({"context_aff", "context_neg", "target_aff", "target_neg"}, _negation),
]
