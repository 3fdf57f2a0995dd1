"""Where words begin among the tokens of a text, whatever the tokenizer: what taggers need."""

import numpy as np
import tensorflow as tf


def find_words(tokenizer, text, ids, starts, ends, punctuation=True):
    """Which tokens are the first of their word, and which are seen.

    White space ends a word. A token of white space alone begins none and is not seen: a word ends
    where the last of its tokens that are seen does.

    Args:
        tokenizer: made the tokens.
        text: tf.string [N].
        ids, starts, ends: int32 RaggedTensors [N, None], what `tokenize_with_offsets` gave for it.
        punctuation: whether each punctuation mark is a word of its own, as far as tokens are: GPT-2's
            "'s" is one.

    Returns:
        Two bool tensors, for the tokens of all rows one after the other.
    """
    rows = ids.value_rowids()
    texts = tf.gather(text, rows)
    seen = (ends.values > starts.values) & ~_is(r"[\s\pZ]", texts, starts.values)
    texts, rows, ids, starts, ends = (tf.boolean_mask(v, seen) for v in (texts, rows, ids.values, starts.values, ends.values))
    first = tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(rows)]
    previous = tf.where(first, 0, tf.concat([[0], ends[:-1]], 0)[: tf.size(rows)])
    # Behind a blank. Tokens that are parts of one character stand in the same place.
    begins = first | (starts > previous)
    if tokenizer.splits_punctuation:
        own = ~tf.gather(tf.constant(np.asarray(tokenizer.is_continuation)), ids)
        begins = own if punctuation else own & begins
    elif punctuation:
        mark = _is(_PUNCTUATION, texts, starts) | (_is(_PUNCTUATION, texts, tf.maximum(starts - 1, 0)) & (starts > 0))
        begins |= mark & (starts >= previous)
    return tf.scatter_nd(tf.where(seen), begins, tf.shape(seen, tf.int64)), seen


_PUNCTUATION = r"[[:punct:]]|\p{P}"


def _is(pattern, text, place):
    return tf.strings.regex_full_match(tf.strings.substr(text, place, tf.ones_like(place), unit="UTF8_CHAR"), pattern)
