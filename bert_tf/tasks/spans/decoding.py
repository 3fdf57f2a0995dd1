"""From the spans that a model proposes in each window to the answers of each question, in Python and in served models."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks.sequences import as_strings
from bert_tf.tasks.spans.heads import IMPOSSIBLE

#: `null_odds` of a question without any span: above every threshold.
CERTAIN = 1e9
#: Questions that `find_answers` decides together.
_TOGETHER = 512


@dataclasses.dataclass(frozen=True)
class BestAnswers:
    """What a model found for one question.

    Attributes:
        texts, starts, ends, scores: lists of the best spans, best first, without equal texts; [start, end) in
            characters of the context. Empty where no window proposes a span.
        null_score: the smallest null score of its windows.
        null_odds: what is compared with the threshold: of BERT's head null score - best score, of others the null
            score.
        answered: whether the best text is the answer; else the answer is "".
    """

    texts: list
    starts: list
    ends: list
    scores: list
    null_score: float
    null_odds: float
    answered: bool

    @classmethod
    def guess(cls, text):
        """Of a text that no model found; "" says that there is no answer."""
        return cls([text], [0], [0], [0.0], 0.0, -CERTAIN if text else CERTAIN, bool(text))

    @property
    def text(self):
        """The best text; "" where there is none."""
        return self.texts[0] if self.texts else ""


def best_spans(contexts, owners, outputs, first, characters, n_best, compared):
    """The best spans of questions (google-research/bert `write_predictions`; the text comes from the offsets of the tokens).

    Args:
        contexts: tf.string [N], one for each question.
        owners: int32 [W], the question of each window, ascending.
        outputs: what `SpanModel` returns for the windows.
        first: int32 [W], where in `characters` the token in column 0 of a window would stand.
        characters: the start and the end of each token of all contexts in its context, int32 [T] each, T at least 1.
        n_best: n.
        compared: how many spans of a question are looked at, those with the best scores.

    Returns:
        dict of `answers` string, `starts`, `ends` int32 and `scores` float32 [N, n], best first, of equals the earlier,
        without equal texts; where there are fewer, "", -1, -1 and -1e9. And `all` bool [N]: whether no span beyond
        those compared would be among them.
    """
    scores, count = outputs["scores"], tf.size(contexts)
    possible = scores > IMPOSSIBLE / 2
    begins, ends = (
        tf.gather(of_tokens, tf.where(possible, first[:, None] + outputs[name], 0))
        for of_tokens, name in zip(characters, ("starts", "ends"))
    )
    scores = tf.where(possible & (ends > begins), scores, IMPOSSIBLE)

    def of_questions(values, filler):
        rows = tf.RaggedTensor.from_value_rowids(values, tf.cast(owners, tf.int64), tf.cast(count, tf.int64), False)
        rows = rows.to_tensor(filler)  # [N, windows, K]
        rows = tf.reshape(rows, [count, tf.size(rows) // tf.maximum(count, 1)])
        return tf.pad(rows, [[0, 0], [0, compared]], constant_values=filler)  # so many columns also without a question

    scores, order = tf.math.top_k(of_questions(scores, IMPOSSIBLE), compared)
    begins, ends = (tf.gather(of_questions(x, 0), order, batch_dims=1) for x in (begins, ends))
    possible = scores > IMPOSSIBLE / 2
    begins, lengths = tf.where(possible, begins, 0), tf.where(possible, ends - begins, 0)
    texts = tf.strings.substr(contexts[:, None], begins, lengths, unit="UTF8_CHAR")
    # Of the texts of all questions, which are numbered together, the first of each number.
    questions = tf.repeat(tf.strings.as_string(tf.range(count)), compared)
    _, number = tf.unique(tf.strings.join([questions, tf.reshape(texts, [-1])], " "))
    place = tf.range(tf.size(number))
    again = place > tf.gather(tf.math.unsorted_segment_min(place, number, tf.size(number)), number)
    distinct = possible & ~tf.reshape(again, tf.shape(texts))
    order = tf.argsort(tf.cast(~distinct, tf.int32), axis=1, stable=True)[:, :n_best]
    distinct = tf.gather(distinct, order, batch_dims=1)

    def chosen(values, filler):
        return tf.where(distinct, tf.gather(values, order, batch_dims=1), filler)

    best = {"answers": chosen(texts, ""), "starts": chosen(begins, -1), "ends": chosen(begins + lengths, -1)}
    return best | {"scores": chosen(scores, IMPOSSIBLE), "all": distinct[:, -1] | ~possible[:, -1]}


def decide(best, owners, null_scores, null_alone, threshold):
    """Whether the best span of each question is its answer.

    Args:
        best: of `best_spans`.
        owners: int32 [W], the question of each window, ascending.
        null_scores: float32 [W], of the windows.
        null_alone: of the model's head.
        threshold: of `null_odds`; None where no question is impossible.

    Returns:
        (bool [N], the null score float32 [N], `null_odds` float64 [N]); see `BestAnswers`.
    """
    some, null_scores = best["starts"][:, 0] >= 0, tf.math.segment_min(null_scores, owners)
    null_odds = tf.cast(null_scores, tf.float64) - (0.0 if null_alone else tf.cast(best["scores"][:, 0], tf.float64))
    null_odds = tf.where(some, null_odds, CERTAIN)
    return some if threshold is None else some & (null_odds <= threshold), null_scores, null_odds


def find_answers(sequences, outputs, contexts, n_best, null_alone, threshold):
    """`BestAnswers` for each question.

    Args:
        sequences: `WindowSequences`.
        outputs: for each window a dict of arrays, what `SpanModel` returns for it.
        contexts: list of str, one for each question.
        n_best: the most texts of a question.
        null_alone, threshold: of `decide`.
    """
    outputs = {name: np.stack([o[name] for o in outputs]) for name in ("scores", "starts", "ends", "null_scores")}
    first, of_windows = sequences.places - sequences.offsets, sequences.windows.owners.numpy()
    characters = [tf.constant(np.append(of_tokens, 0), tf.int32) for of_tokens in (sequences.starts, sequences.ends)]
    results = []
    for low in range(0, len(contexts), _TOGETHER):
        texts = contexts[low : low + _TOGETHER]
        windows = slice(*np.searchsorted(of_windows, (low, low + len(texts))))
        part, owners = {name: array[windows] for name, array in outputs.items()}, of_windows[windows] - low
        best, compared = {"all": False}, n_best
        while not np.all(best["all"]):
            compared *= 2
            best = best_spans(as_strings(texts), owners, part, first[windows], characters, n_best, compared)
        decided = decide(best, owners, part["null_scores"], null_alone, threshold)
        columns = (x.numpy().tolist() for x in (best["starts"], best["ends"], best["scores"], *decided))
        for context, starts, ends, scores, answered, null_score, null_odds in zip(texts, *columns):
            count = n_best - starts.count(-1)
            answers = [context[start:end] for start, end in zip(starts[:count], ends)]
            results.append(
                BestAnswers(answers, starts[:count], ends[:count], scores[:count], null_score, null_odds, answered)
            )
    return results
