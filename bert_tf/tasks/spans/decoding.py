"""From the spans that a model proposes in each window to the answers of each question."""

import dataclasses

import numpy as np

from bert_tf.tasks.spans.heads import IMPOSSIBLE

#: `null_odds` of a question without any span: above every threshold.
CERTAIN = 1e9


@dataclasses.dataclass(frozen=True)
class Found:
    """What a model found for one question.

    Attributes:
        texts, starts, ends, scores: lists of the best spans, best first, without equal texts; [start, end) in
            characters of the context. Empty where no window proposes a span.
        null_score: the smallest null score of its windows.
        null_odds: what is compared with the threshold: of BERT's head null score - best score, of others the null
            score.
    """

    texts: list
    starts: list
    ends: list
    scores: list
    null_score: float
    null_odds: float

    @classmethod
    def guess(cls, text, null_odds):
        """Of a text that no model found."""
        return cls([text], [0], [0], [0.0], 0.0, null_odds)

    @property
    def text(self):
        """The best text; "" where there is none."""
        return self.texts[0] if self.texts else ""


def find_answers(sequences, outputs, contexts, n_best, null_alone):
    """`Found` for each question (google-research/bert `write_predictions`; the text comes from the offsets of the tokens).

    Args:
        sequences: `WindowSequences`.
        outputs: for each window a dict of arrays, what `SpanModel` returns for it.
        contexts: list of str, one for each question.
        n_best: the most texts of a question.
        null_alone: of the model's head.
    """
    scores, starts, ends = (np.stack([o[name] for o in outputs]) for name in ("scores", "starts", "ends"))
    null_scores = np.array([o["null_scores"] for o in outputs], np.float64)
    possible = scores > IMPOSSIBLE / 2
    first = (sequences.second.row_starts().numpy()[sequences.rows] + sequences.begins - sequences.offsets)[:, None]
    begins, finishes = (
        characters[np.where(possible, first + positions, 0)] if len(characters) else positions
        for characters, positions in ((sequences.starts, starts), (sequences.ends, ends))
    )
    possible &= finishes > begins
    splits = np.searchsorted(sequences.owners, np.arange(len(contexts) + 1))
    found = []
    for context, low, high in zip(contexts, splits[:-1], splits[1:]):
        flat = scores[low:high].ravel()
        best, seen = [], set()
        for index in np.argsort(-flat, kind="stable"):
            window, candidate = divmod(int(index), scores.shape[1])
            if not possible[low + window, candidate]:
                continue
            start, end = int(begins[low + window, candidate]), int(finishes[low + window, candidate])
            if context[start:end] not in seen:
                seen.add(context[start:end])
                best.append((context[start:end], start, end, float(flat[index])))
            if len(best) == n_best:
                break
        null = float(null_scores[low:high].min())
        odds = null if null_alone else null - best[0][3] if best else CERTAIN
        columns = [list(column) for column in zip(*best)] if best else [[], [], [], []]
        found.append(Found(*columns, null, odds if best else CERTAIN))
    return found
