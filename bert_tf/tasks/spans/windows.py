"""Long contexts as windows: where each begins, which tokens it answers for, and its row of token ids.

`convert_examples_to_features` and `_check_is_max_context` of google-research/bert `run_squad.py`, as graph operations
on
whole batches: the data of training and a served model use the same ones.
"""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of N questions, those of one after the other; all int32 [W].

    Attributes:
        owners: the question, 0 to N - 1, ascending.
        begins, lengths: the tokens [begin, begin + length) of its context.
        best_begins, best_ends: the tokens [best_begin, best_end) of the context that have their maximum context in this
            window; an answer that begins with one of them is taken from this window.
    """

    owners: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor
    best_begins: tf.Tensor
    best_ends: tf.Tensor

    def chosen(self, numbers):
        """Those of these numbers, int [B]."""
        return Windows(*(tf.gather(getattr(self, field.name), numbers) for field in dataclasses.fields(self)))


def cut_windows(lengths, rooms, stride):
    """`Windows` of contexts; one without a token has one empty window.

    The next window begins `stride` tokens after the last, or a whole window after it where windows are shorter.

    A token's context in a window is min(tokens before it, tokens after it) + 0.01 * length of the window; it belongs to
    the window with the largest, of equals the first. Windows differ in length only at the end of a context, and so the
    tokens of a window are one interval, whose border with the next window is computed here. It is exact, in hundredths.

    Args:
        lengths: int32 [N], tokens of each context.
        rooms: int32 [N], the most tokens of a window, at least 1.
        stride: int, at least 1.
    """
    steps = tf.minimum(rooms, stride)
    counts = 1 + tf.maximum(-((rooms - lengths) // steps), 0)
    owners = tf.repeat(tf.range(tf.size(lengths)), counts)
    number = tf.range(tf.size(owners)) - tf.gather(tf.cumsum(counts, exclusive=True), owners)
    length, room, step = (tf.gather(x, owners) for x in (lengths, rooms, steps))
    begin = number * step
    end = tf.minimum(begin + room, length)
    next_begin, next_end = begin + step, tf.minimum(begin + step + room, length)
    shorter = (end - begin) - (next_end - next_begin)
    # From the token on that has more after it in this window than before it in the next one: less context here.
    border = (100 * (end - 1 + next_begin) + shorter) // 200 + 1
    border = tf.minimum(tf.where(100 * (next_end - end) > shorter, border, end), end)
    is_last = number == tf.gather(counts, owners) - 1
    best_ends = tf.where(is_last, length, border)
    best_begins = tf.where(number == 0, 0, tf.concat([[0], best_ends[:-1]], 0)[: tf.size(owners)])
    return Windows(owners, begin, end - begin, best_begins, best_ends)


def rooms_for_contexts(question_lengths, layout, sequence_length):
    """How many tokens of a context fit beside each question: int32 [N], of int32 [N]."""
    return sequence_length - layout.special_tokens_per_pair - question_lengths


def context_first(tokenizer):
    """Whether the context stands before the question, as zihangdai/xlnet `squad_utils.py` has it."""
    return tokenizer.layout_name == "xlnet"


def null_at_end(tokenizer):
    """Whether "no answer" is the last position of a row, not the first: where the layout ends with [CLS] (XLNet), and
    where no special token begins a text."""
    return bool(tokenizer.layout.at_end) or not tokenizer.layout.before_first


def context_offsets(tokenizer, question_lengths):
    """The column of the first token of the context, for questions of these lengths (a tensor or an array)."""
    layout = tokenizer.layout
    if context_first(tokenizer):
        return question_lengths * 0 + len(layout.before_first)
    special = len(layout.before_first) + len(layout.after_first) + len(layout.before_second)
    return question_lengths + special


def window_features(tokenizer, questions, tokens, first, windows, sequence_length, dynamic=True):
    """The features of W windows.

    Args:
        tokenizer: whose `layout` says which special tokens stand between question and context.
        questions: int32 RaggedTensor [W, None], the question of each window.
        tokens: int32 [T], those of all contexts.
        first: int32 [W], which of them is the first of each window.
        windows: their `Windows`.
        sequence_length: S, the longest row.
        dynamic: pad to the longest row of the batch instead of S.

    Returns:
        dict of `token_ids`, `segment_ids` int32, `padding_mask` bool [W, S]; `context_mask` bool [W, S], True at the
        context, and `start_mask` bool [W, S], where an answer of this window may begin.
    """
    places = tf.ragged.range(first, first + windows.lengths, row_splits_dtype=questions.row_splits.dtype)
    contexts = places.with_values(tf.gather(tokens, places.values))
    first, second = (contexts, questions) if context_first(tokenizer) else (questions, contexts)
    features = tokenizer.pack(first, second, sequence_length, dynamic=dynamic)
    offsets = context_offsets(tokenizer, tf.cast(questions.row_lengths(), tf.int32))
    column = tf.range(tf.shape(features["token_ids"])[1]) + (windows.begins - offsets)[:, None]  # in the context

    def between(first, last):
        return (column >= first[:, None]) & (column < last[:, None])

    features["context_mask"] = between(windows.begins, windows.begins + windows.lengths)
    features["start_mask"] = between(windows.best_begins, windows.best_ends)
    return features
