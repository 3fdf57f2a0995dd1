"""The engine of the likelihood probes: questions of texts, scored in batches, measured, and averaged in groups."""

import dataclasses
import itertools

import numpy as np

from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import ProbeTable, is_known


@dataclasses.dataclass(frozen=True)
class Question:
    """Texts that a model compares.

    Attributes:
        groups: tuple of str, the rows of the table in which it counts.
        texts: tuple of str.
        spans: for each text (start, end), the characters that are scored; () for whole texts.
        facts: dict, what else the measure of the probe needs.

    Example:
        Question(("all", "agreement"), ("she sings", "she sing"))
    """

    groups: tuple
    texts: tuple
    spans: tuple = ()
    facts: dict = dataclasses.field(default_factory=dict)


def fill(text, blank, words):
    """(texts, spans) of a `Question`: the text with each of some words in its blank.

    Example:
        fill("a ___ film", "___", ["good", "bad"])  # (('a good film', 'a bad film'), ((2, 6), (2, 5)))
    """
    begin = text.index(blank)
    return tuple(text.replace(blank, word) for word in words), tuple((begin, begin + len(word)) for word in words)


class LikelihoodProbe(Probe):
    """Base of the probes of questions. A subclass has `read`, which returns a list of `Question`, and `answer`.

    Attributes:
        columns: tuple of str, of the table; the last one counts the questions whose answer has a number for the first.
        note: str, of the table; "{ties}" in it is that number of the first row.
        bars: of `ProbeTable`.

    Example:
        class Shorter(LikelihoodProbe):
            name, title, columns = "shorter", "is the shorter text the more probable one?", ("shorter", "pairs")

            def answer(self, question, scores):
                return {"shorter": scores[0][0] > scores[1][0]}

        Shorter().run(scorer, [Question(("all",), ("a film", "a good film"))])["all"]["shorter"]
    """

    columns = ()
    note = ""
    bars = True

    @property
    def unit(self):
        return self.columns[-1]

    def answer(self, question, scores):
        """What is measured of one question: {name: a number or bool}, nan where it is not known; None to leave it out.

        Args:
            question: `Question`.
            scores: of `scores`, for this question.
        """
        raise NotImplementedError

    def scores(self, scorer, questions):
        """For each question a list with (float, `ScoredText`) of each of its texts."""
        texts = [self.texts(question, scorer) for question in questions]
        unique = list(dict.fromkeys(itertools.chain(*texts)))
        if unique and unique[0][1] is None:
            scored = [(text.log_likelihood, text) for text in scorer.score([text for text, _ in unique])]
        else:
            scored = scorer.span_scores(*zip(*unique)) if unique else []
        score_of = dict(zip(unique, scored))
        return [[score_of[text] for text in of_question] for of_question in texts]

    def texts(self, question, scorer):
        """list of (text, span or None), what is scored for a question."""
        return list(itertools.zip_longest(question.texts, question.spans))

    def combine(self, answers):
        """The numbers of a row of the table: the means of what is known of its answers, and how many they are."""
        numbers = {}
        for name in dict.fromkeys(itertools.chain(*answers)):
            values = [answer[name] for answer in answers if is_known(answer.get(name))]
            numbers[name] = float(np.mean(values)) if values else float("nan")
        return numbers | {self.columns[-1]: sum(self.columns[0] in answer for answer in answers)}

    def summary(self, answered):
        """{row of the table: {name: number}} of (question, answer) pairs; an answer of None is left out."""
        groups = {}
        for question, answer in answered:
            for group in question.groups if answer is not None else ():
                groups.setdefault(group, []).append(answer)
        return {group: self.combine(answers) for group, answers in groups.items()}

    def run(self, scorer, questions, progress=None):
        answers, size = [], 4 * scorer.batch_size
        for begin in range(0, len(questions), size):
            part = questions[begin : begin + size]
            answers += [self.answer(*one) for one in zip(part, self.scores(scorer, part))]
            if progress is not None:
                progress(len(answers), len(questions))
        return self.table(self.summary(list(zip(questions, answers))))

    def table(self, numbers):
        """The `ProbeTable` of what `summary` returns."""
        rows = [(row, [of_row.get(column) for column in self.columns]) for row, of_row in numbers.items()]
        facts = {}
        for row, of_row in numbers.items():
            for name in of_row.keys() - set(self.columns):
                facts.setdefault(name, {})[row] = of_row[name]
        note = self.note.format_map(next(iter(numbers.values())))
        return ProbeTable(self.title, list(self.columns), rows, note, bars=self.bars, facts=facts)
