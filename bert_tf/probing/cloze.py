"""Cloze questions by kind of knowledge: which word does a model put into the blank?

As LAMA (Petroni et al. 2019, section 4) with the whole vocabulary as candidates; beside it a choice among a few
options, which also compares models with different vocabularies.
"""

import dataclasses

import numpy as np

from bert_tf.probing.tables import ProbeTable, beside, is_known


@dataclasses.dataclass(frozen=True)
class ClozeResult:
    """How a model fills the blanks of some questions.

    Attributes:
        accuracy: float, the fraction of questions whose answer is the most probable of the options; nan without
            options, as the next two.
        chance: float, of an option drawn at random.
        without_context: float, the accuracy where the model sees the options alone, without the text around the blank;
            nan for a decoder without a start token (GPT-1), which predicts no first token.
        p_at_1, p_at_5: float, the fraction of the ranked questions with an answer among the 1 or 5 most probable tokens
            of the whole vocabulary; nan where none is ranked. A decoder sees the text before the blank alone.
        median_rank: float, of the best answer, from 1.
        count, ranked: int, all questions, and those with an answer that is one token.

    Example:
        result = run_cloze(scorer, [ClozeQuestion("films", "a ___ film", ("good",), ("good", "bad"))])["films"]
        result.accuracy, result.p_at_1
    """

    accuracy: float
    chance: float
    without_context: float
    p_at_1: float
    p_at_5: float
    median_rank: float
    count: int
    ranked: int


def run_cloze(scorer, questions, progress=None):
    """The `ClozeResult` of each kind of question, in the order of the file.

    Args:
        scorer: of `text_scorer`.
        questions: list of `ClozeQuestion`.
        progress: function(questions done), called now and then; None for nothing.

    Returns:
        {kind: `ClozeResult`}.

    Example:
        questions = [ClozeQuestion("films", "a ___ film", ("good",), ("good", "bad"))]
        run_cloze(scorer, questions)["films"].accuracy
    """
    rows, size = [], scorer.batch_size
    for begin in range(0, len(questions), size):
        rows += _answered(scorer, questions[begin : begin + size])
        if progress is not None:
            progress(len(rows))
    kinds = {}
    for question, row in zip(questions, rows):
        kinds.setdefault(question.kind, []).append(row)
    return {kind: _result(found) for kind, found in kinds.items()}


def _answered(scorer, questions):
    """For each question: (chosen rightly, chosen rightly without context, chance, rank of the best answer or None)."""
    words = [list(dict.fromkeys((*question.options, *question.answers))) for question in questions]
    filled = [question.filled(word) for question, of_question in zip(questions, words) for word in of_question]
    scored = iter(scorer.span_scores([text for text, _ in filled], [span for _, span in filled]))
    alone = [word for of_question in words for word in of_question]
    spans = [(0, len(word)) for word in alone]
    guesses = iter(scorer.span_scores(alone, spans)) if scorer.predicts_first_token else None
    rows = []
    for question, of_question in zip(questions, words):
        found = {word: next(scored) for word in of_question}
        apart = None if guesses is None else {word: next(guesses) for word in of_question}
        ranks = [found[word][1].ranks[0] for word in question.answers if len(found[word][1].ranks) == 1]
        chosen = [_prefers(values, question.options) for values in (found, apart)]
        chance = 1 / len(question.options) if question.options else float("nan")
        rows.append((*chosen, chance, min(ranks) + 1 if ranks else None))
    return rows


def _prefers(values, options):
    """Whether the first option is more probable than each of the others; nan without options, or without values."""
    if values is None or not options:
        return float("nan")
    right, *others = (values[option][0] for option in options)
    return right > max(others)


def _result(rows):
    right, guessed, chance, ranks = zip(*rows)
    ranks = np.array([rank for rank in ranks if rank is not None], np.float64)
    known = len(ranks) > 0
    return ClozeResult(
        accuracy=float(np.mean(right)),
        chance=float(np.mean(chance)),
        without_context=float(np.mean(guessed)),
        p_at_1=float(np.mean(ranks <= 1)) if known else float("nan"),
        p_at_5=float(np.mean(ranks <= 5)) if known else float("nan"),
        median_rank=float(np.median(ranks)) if known else float("nan"),
        count=len(rows),
        ranked=len(ranks),
    )


def cloze_table(result, control=None):
    """The `ProbeTable` of what `run_cloze` returns for a model, beside the same model with random weights.

    Example:
        found = run_cloze(scorer, [ClozeQuestion("films", "a ___ film", ("good",), ("good", "bad"))])
        cloze_table(found).lines()
    """
    names = ("accuracy", "chance", "without_context", None, "p_at_1", "p_at_5", "median_rank")

    def row(kinds):
        values = [
            beside(control, lambda of_kind: _mean(of_kind, kinds, "accuracy"))
            if name is None
            else _mean(result, kinds, name)
            for name in names
        ]
        return [*values, sum(result[kind].count for kind in kinds)]

    rows = [(kind, row([kind])) for kind in result]
    if len(result) > 1:
        rows.append(("mean of kinds", row(list(result))))
    columns = ["right", "chance", "no context", "random", "P@1", "P@5", "median rank", "questions"]
    note = (
        "right: the answer is the most probable option; random: the same of random weights; P@1, P@5, rank: among the whole "
        "vocabulary"
    )
    return ProbeTable("cloze questions", columns, rows, note)


def _mean(result, kinds, name):
    """The mean of a number over the kinds that have it; None where none has."""
    known = [number for kind in kinds if is_known(number := getattr(result[kind], name))]
    return sum(known) / len(known) if known else None
