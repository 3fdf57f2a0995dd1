"""Where words begin and end among the tokens of a text, whatever the tokenizer: what taggers need."""

import functools
import unicodedata
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.tokenizers.ops.strings import valid_utf8
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Tensor

_SPACE, _PUNCTUATION = 1, 2
# After the last plane with punctuation.
_CODES = 0x20000


def tokenize_words(tokenizer: Tokenizer, text: Tensor, punctuation: bool = True) -> Any:
    """The tokens of texts and their words, whatever white space is around them.

    A text is tokenized with one space for each run of white space and none at its ends, as words that are given as a
    list are: the tokens of words are then the same whether they are given as a list or as a text.

    Args:
        tokenizer: any.
        text: tf.string [N].
        punctuation: of `find_word_spans`.

    Returns:
        (ids, begins, spans): int32 RaggedTensor [N, None]; bool RaggedTensor [N, None], whether a token begins a word;
        int32 RaggedTensor [N, None, 2], the words' [start, end) in characters of the given text.
    """
    characters = tf.strings.unicode_decode(valid_utf8(text), "UTF-8")
    rows, size = characters.value_rowids(), tf.size(characters.values)
    space = _classes_of(characters.values) == _SPACE
    after = tf.concat([[True], space[:-1] | (rows[1:] != rows[:-1])], 0)[:size]  # a space, or at the begin of a text
    characters_before = tf.concat(
        [[0], tf.cumsum(tf.cast(~space, tf.int32))], 0
    )  # before each character, and after the last
    followed = characters_before[:-1] < tf.gather(characters_before, tf.gather(characters.row_limits(), rows))
    is_kept = ~space | (~after & followed)
    plain = characters.with_values(tf.where(space, ord(" "), characters.values))
    plain = tf.ragged.boolean_mask(plain, characters.with_values(is_kept))
    text = tf.strings.unicode_encode(plain, "UTF-8")

    ids, starts, ends = tokenizer.tokenize_with_offsets(text)
    begins, spans = find_word_spans(tokenizer, text, ids, starts, ends, punctuation)
    begins = ids.with_values(begins)
    counts = tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)
    rows = tf.repeat(tf.range(tf.size(counts)), tf.cast(counts, tf.int32))
    origins = tf.where(is_kept)[:, 0]  # of the characters of all texts
    base = tf.gather(plain.row_starts(), rows)
    start, last = (tf.gather(origins, base + tf.cast(x, tf.int64)) for x in (spans[:, 0], spans[:, 1] - 1))
    spans = tf.stack([start, last + 1], axis=1) - tf.gather(characters.row_starts(), rows)[:, None]
    return ids, begins, tf.RaggedTensor.from_row_lengths(tf.cast(spans, tf.int32), counts)


def find_word_spans(
    tokenizer: Tokenizer, text: Tensor, ids: Tensor, starts: Tensor, ends: Tensor, punctuation: bool = True
) -> Any:
    """The words of texts, and the tokens that they begin with.

    White space ends a word; text between its tokens that is in none of them, such as an accent that the
    tokenizer drops, belongs to it. Tokens of white space alone belong to the word that follows them, as the space of a
    token that begins with one does.

    Args:
        tokenizer: made the tokens.
        text: tf.string [N].
        ids, starts, ends: int32 RaggedTensors [N, None], what `tokenize_with_offsets` gave for it.
        punctuation: whether each punctuation mark is a word of its own, as far as tokens are: GPT-2's "'s" is one.

    Returns:
        (begins, spans): bool [T], whether each token of all rows begins a word; int32 [W, 2], the words' offsets row by
        row, in characters [start, end).
    """
    characters = tf.strings.unicode_decode(text, "UTF-8", errors="replace")
    classes = _classes_of(characters.values)
    # How much white space there is before each character of all texts, and after the last.
    space = tf.concat([[0], tf.cumsum(tf.cast(classes == _SPACE, tf.int32))], 0)
    row_starts = tf.cast(characters.row_splits, tf.int32)

    rows, token_starts = tf.cast(ids.value_rowids(), tf.int32), ids.row_starts()
    row, length = tf.gather(row_starts, rows), tf.gather(tf.cast(characters.row_lengths(), tf.int32), rows)
    # Bytes that are not UTF-8 may be counted differently.
    starts = starts.with_values(tf.minimum(starts.values, length))
    ends = ends.with_values(tf.minimum(ends.values, length))
    white = tf.gather(space, row + ends.values) - tf.gather(space, row + starts.values)
    is_visible = ends.values - starts.values > white
    rows, row, ids, starts, ends = (
        tf.boolean_mask(v, is_visible) for v in (rows, row, ids.values, starts.values, ends.values)
    )
    first = tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(rows)]
    previous = tf.where(first, 0, tf.concat([[0], ends[:-1]], 0)[: tf.size(rows)])
    apart = first | (tf.gather(space, row + starts) > tf.gather(space, row + previous))
    if tokenizer.splits_punctuation:
        is_word_start = first | ~tf.gather(tf.constant(np.asarray(tokenizer.is_continuation)), ids)
        begins = is_word_start if punctuation else is_word_start & apart
    elif punctuation:
        is_mark = tf.concat([classes == _PUNCTUATION, [False]], 0)
        mark = tf.gather(is_mark, row + starts) | (tf.gather(is_mark, row + tf.maximum(starts - 1, 0)) & (starts > 0))
        # Tokens that are parts of one character have the same offsets.
        begins = apart | (mark & (starts >= previous))
    else:
        begins = apart

    word_rows, word_starts = tf.boolean_mask(rows, begins), tf.boolean_mask(row + starts, begins)
    limit = tf.gather(row_starts, word_rows + 1)
    following = tf.minimum(tf.concat([word_starts[1:], [tf.int32.max]], 0)[: tf.size(word_starts)], limit)
    spaces = tf.cast(tf.where(classes == _SPACE)[:, 0], tf.int32)
    spaces = tf.concat([spaces, [tf.int32.max]], 0)
    # A token may hold white space, so the end of its last token counts as well.
    word = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    token_ends = tf.math.segment_max(row + ends, word)
    next_space = tf.gather(spaces, tf.searchsorted(spaces, token_ends))
    word_ends = tf.maximum(token_ends, tf.minimum(following, next_space))
    origin = tf.gather(row_starts, word_rows)
    # A word begins with the tokens of white space before it.
    visible_at = tf.cast(tf.where(is_visible)[:, 0], tf.int32)
    begins_at = tf.concat([[0], visible_at[:-1] + 1], 0)[: tf.size(rows)]
    begins_at = tf.where(first, tf.gather(tf.cast(token_starts, tf.int32), rows), begins_at)
    begins = (
        tf.scatter_nd(tf.boolean_mask(begins_at, begins)[:, None], tf.ones_like(word_starts), tf.shape(is_visible)) > 0
    )
    return begins, tf.stack([word_starts - origin, word_ends - origin], axis=1)


def _classes_of(characters):
    """uint8 [T], of characters int32 [T]; see `_read_classes`."""
    return tf.gather(tf.constant(_read_classes()), tf.minimum(characters, _CODES - 1))


@functools.cache
def _read_classes():
    """uint8, for each code point: white space, punctuation as BERT counts it, or neither."""
    classes = np.zeros(_CODES, np.uint8)
    for code in range(len(classes)):
        character = chr(code)
        if character.isspace():
            classes[code] = _SPACE
        elif unicodedata.category(character).startswith("P") or (33 <= code < 127 and not character.isalnum()):
            classes[code] = _PUNCTUATION
    return classes
