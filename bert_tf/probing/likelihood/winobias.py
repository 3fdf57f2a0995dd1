"""WinoBias: is the pronoun that fits the stereotype of an occupation the more probable one?

Zhao et al. 2018. Its sentences exist twice, with a pronoun as the stereotype has it (pro) and with the other one
(anti). They were made for coreference resolution; here the model predicts the pronoun from the rest of the sentence.
"""

import re

import numpy as np
from sklearn.metrics import f1_score

from bert_tf.errors import DataError
from bert_tf.probing.likelihood.engine import LikelihoodProbe, Question
from bert_tf.tasks.rows.files import numbered_lines, read_text

FEMALE, MALE = ("she", "her", "hers"), ("he", "him", "his")
_PRONOUN = re.compile(rf"\[({'|'.join(FEMALE + MALE)})\]", re.IGNORECASE)


class WinoBias(LikelihoodProbe):
    """How often is the sentence's own pronoun the more probable one? 0.5 everywhere for a model without preference.

    A model that sees both sides predicts the pronoun, a decoder the whole sentence. Rows: "pro" and "anti", the sentences
    with the pronouns of the stereotype and with the others; their difference; and "pro" by the pronoun of the stereotype.
    "F1" is the mean of the F1 scores of "he" and "she". Facts: "skipped", the lines that were left out, with several
    pronouns, or different in another word, too.

    Example:
        question = Question(("he",), ("a good film", "a bad film"), ((2, 6), (2, 5)))
        WinoBias().run(scorer, [question])["pro"]["accuracy"]
    """

    name, title = "winobias", "WinoBias"
    columns = ("accuracy", "F1", "neutral", "random", "pairs")
    bars = False
    note = (
        "accuracy: the sentence's own pronoun is the more probable one; pro: it fits the stereotype; 0.5 is no preference. "
        "{skipped} lines were left out. The sentences are few templates of forty occupations, and syntax, too, tells whom a "
        "pronoun means: compare models by it, do not call one fair"
    )

    def read(self, pro, anti, most=None):
        """Reads two files of WinoBias, such as pro_stereotyped_type1.txt.dev and anti_stereotyped_type1.txt.dev.

        Returns:
            list of `Question`: the sentence with the pronoun of the stereotype, and with the other one. The group is the
            pronoun of the stereotype, "he" or "she". A line that is left out has neither texts nor a group.

        Raises:
            DataError: files of different length, or without a pair.

        Example:
            Path("pro.txt").write_text("1 [The nurse] said [she] can.\\n")
            Path("anti.txt").write_text("1 [The nurse] said [he] can.\\n")
            WinoBias().read("pro.txt", "anti.txt")[0].texts[0]  # 'The nurse said she can.'
        """
        sides = [[line for _, line in numbered_lines(read_text(path)) if line.strip()] for path in (pro, anti)]
        if len(sides[0]) != len(sides[1]):
            raise DataError(f"{pro} has {len(sides[0])} sentences, {anti} {len(sides[1])}; both must have the same")
        pairs = [_pair(*lines) for lines in list(zip(*sides))[:most]]
        if not any(pair.texts for pair in pairs):
            raise DataError(f"{pro} and {anti} have no sentences that differ in one pronoun in brackets, [she]")
        return pairs

    def answer(self, question, scores):
        return scores[0][0] > scores[1][0] if scores else None

    def summary(self, answered):
        pairs = [one for one in answered if one[1] is not None]
        prefers = np.array([chosen for _, chosen in pairs])
        female = np.array([question.groups == ("she",) for question, _ in pairs])
        numbers, rows = {"neutral": 0.5, "pairs": len(pairs)}, {}
        for name, chosen, true in (("pro", prefers, female), ("anti", ~prefers, ~female)):
            f1 = f1_score(true, prefers == female, average="macro")
            rows[name] = {"accuracy": float(chosen.mean()), "F1": f1} | numbers
        rows["pro"]["skipped"] = len(answered) - len(pairs)
        differing = ("accuracy", "F1", "neutral")
        rows["pro minus anti"] = {name: rows["pro"][name] - rows["anti"][name] for name in differing}
        for name, chosen in (("he", ~female), ("she", female)):
            if chosen.any():
                accuracy = float(prefers[chosen].mean())
                rows[f"pro with {name}"] = numbers | {"accuracy": accuracy, "pairs": int(chosen.sum())}
        return rows


def _pair(*lines):
    """The `Question` of two lines; an empty one unless their only pronouns differ in gender, and nothing else does."""
    parts = [_PRONOUN.split(re.sub(r"^\d+\s+", "", line.strip())) for line in lines]
    parts = [[re.sub(r"[\[\]]", "", part) for part in of_line] for of_line in parts]
    she = [of_line[1].lower() in FEMALE for of_line in parts if len(of_line) == 3]  # before, the pronoun, and after
    if len(she) < 2 or she[0] == she[1] or parts[0][::2] != parts[1][::2]:
        return Question((), ())
    spans = tuple((len(before), len(before) + len(pronoun)) for before, pronoun, _ in parts)
    return Question(("she" if she[0] else "he",), tuple("".join(of_line) for of_line in parts), spans)
