"""Questions as sequences of token ids: their windows, and where in each the answer stands."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.tasks.sequences import Sequences, gather, padded, tokenize, tokenize_with_offsets
from bert_tf.tasks.spans.windows import context_offsets, cut_windows, null_at_end, rooms_for_contexts, window_features


@dataclasses.dataclass(frozen=True, eq=False)
class WindowSequences(Sequences):
    """Sequences of question answering, R windows: `first` are the Q questions and `second` the C contexts.

    Attributes:
        windows: `Windows`.
        places: int32 [R], which of the tokens of all contexts is the first of each window.
        offsets: int32 [R], the column in which that stands.
        starts, ends: int32 [T], where each token of all contexts stands in its context, in characters.
        labels: int32 [R, 3]: the positions of the first and the last token of the answer, and whether the question has
            an answer.
        loss_weights: float32 [R], 0 for answers without a token.
    """

    windows: object = None
    places: np.ndarray = None
    offsets: np.ndarray = None
    starts: np.ndarray = None
    ends: np.ndarray = None
    loss_weights: np.ndarray = None

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """See `Sequences.features`.

        Returns:
            Dict of the features of `window_features`, and, if there are labels, `start_positions`, `end_positions`
            int32, `answerable` and `label_weights` float32, all [B].
        """
        windows, first = self.windows.chosen(chosen), tf.gather(self.places, chosen)
        questions = gather(self.first, windows.owners)
        features = window_features(tokenizer, questions, self.second.values, first, windows, sequence_length)
        features = {name: padded(x, width) for name, x in features.items()}
        if self.labels is not None:
            start, end, answerable = tf.unstack(tf.gather(self.labels, chosen), axis=1)
            features |= {"start_positions": start, "end_positions": end}
            features |= {"answerable": tf.cast(answerable, tf.float32)}
            features |= {"label_weights": tf.gather(self.loss_weights, chosen) * present}
        return features


def encode_questions(tokenizer, examples, sequence_length, max_query_length, stride):
    """`WindowSequences` of `Questions`. Each distinct context is tokenized once.

    The answer of a window is the first one of its question, from the token that holds its first character to the one
    that holds its last. A window that does not hold all of it, and each window of an impossible question, has "no
    answer", which is the position of [CLS].

    Raises:
        ConfigError: windows have no room for a token of the context.
    """
    numbers, contexts = {}, []
    rows = np.zeros(len(examples), np.int32)
    for index, context in enumerate(examples.text_pairs):
        rows[index] = numbers.setdefault(context, len(contexts))
        if rows[index] == len(contexts):
            contexts.append(context)
    questions = tokenize(tokenizer, examples.texts)[:, :max_query_length]
    ids, starts, ends = tokenize_with_offsets(tokenizer, contexts)
    question_lengths = questions.row_lengths().numpy().astype(np.int32)
    rooms = rooms_for_contexts(question_lengths, tokenizer.layout, sequence_length)
    if rooms.min() < 1:
        longest = int(question_lengths.max())
        raise ConfigError(
            f"task.sequence_length={sequence_length} leaves no room for a context beside a question of {longest} tokens and "
            f"{tokenizer.layout.special_tokens_per_pair} special tokens; raise it, or lower task.max_query_length"
        )
    context_lengths = ids.row_lengths().numpy().astype(np.int32)
    windows = cut_windows(tf.constant(context_lengths[rows]), tf.constant(rooms), stride)
    owners = windows.owners.numpy()
    lengths = question_lengths[owners] + windows.lengths.numpy() + tokenizer.layout.special_tokens_per_pair
    sequences = WindowSequences(
        first=questions,
        second=ids,
        lengths=lengths.astype(np.int64),
        windows=windows,
        places=(ids.row_starts().numpy()[rows[owners]] + windows.begins.numpy()).astype(np.int32),
        offsets=context_offsets(tokenizer, question_lengths)[owners],
        starts=starts.values.numpy(),
        ends=ends.values.numpy(),
    )
    if examples.labels is None:
        return sequences
    labels, loss_weights = _labels(sequences, examples.labels, rows, null_at_end(tokenizer))
    return dataclasses.replace(sequences, labels=labels, loss_weights=loss_weights)


def _labels(sequences, answers, rows, at_end):
    """`labels` and `loss_weights` of `WindowSequences`."""
    splits = sequences.second.row_splits.numpy()
    first, last = tokens_of_answers(sequences.starts, sequences.ends, splits, answers, rows)
    possible = np.array([not one.impossible for one in answers])
    missing = possible & (first > last)
    owners, begins, lengths = (getattr(sequences.windows, name).numpy() for name in ("owners", "begins", "lengths"))
    first, last = first[owners] - begins, last[owners] - begins
    inside = possible[owners] & (first >= 0) & (last < lengths) & (first <= last)
    null = sequences.lengths.astype(np.int32) - 1 if at_end else np.zeros(len(owners), np.int32)
    start, end = (np.where(inside, x + sequences.offsets, null) for x in (first, last))
    labels = np.stack([start, end, possible[owners]], axis=1).astype(np.int32)
    return labels, (~missing[owners]).astype(np.float32)


def tokens_of_answers(starts, ends, splits, answers, rows):
    """The first and the last token of each question's first answer, which its characters are snapped outward to.

    Args:
        starts, ends: int [T], the characters of all tokens; `splits` [C + 1]: the tokens of each context.
        answers: list of `Answers`.
        rows: int [Q], the context of each question.

    Returns:
        Two int64 arrays [Q], counted from the begin of the context; the first is above the last where the answer has no
        token (characters that the tokenizer drops), and for impossible questions.
    """
    spans = np.array([(one.starts[0], one.ends[0]) if one.starts else (0, 0) for one in answers], np.int64)
    # Contexts one after the other on one line of numbers, so that one sorted search finds all.
    width = int(max(ends.max(initial=0), spans.max(initial=0))) + 1
    base = np.repeat(np.arange(len(splits) - 1), np.diff(splits)) * width
    first = np.searchsorted(ends + base, spans[:, 0] + rows * width, side="right")
    last = np.searchsorted(starts + base, spans[:, 1] + rows * width, side="left") - 1
    return first - splits[rows], last - splits[rows]
