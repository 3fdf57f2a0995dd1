"""What the tokenizers share that set special tokens apart before they look at the text."""

import dataclasses
import functools

import tensorflow as tf

from bert_tf.tokenizers.base import Tokenizer, as_vector
from bert_tf.tokenizers.composition import check_normalization, normalize, places_before
from bert_tf.tokenizers.merging import join_bytes
from bert_tf.tokenizers.special_tokens import Chunks, SpecialTokenFinder, as_special_token, whole_texts


class SplitTokenizer(Tokenizer):
    """Cuts texts at special tokens, has the rest encoded, and counts offsets in characters.

    A subclass provides `_encode(text, with_offsets)`, from tf.string [M] to (ids int32 [T], splits
    int32 [M + 1], starts, ends int32 [T]); the last two are bytes of each text, or None. And
    `_encoder_resources`, the trackables that this uses.

    Args:
        vocabulary, role_tokens, layout: see `Tokenizer`.
        special_tokens: further ones, each a str or a `SpecialToken`; naming the token of a role
            again is the way to say more about it.
        normalization: None, or "NFC": decomposed text is composed first; see composition.py.
    """

    def __init__(self, vocabulary, role_tokens, special_tokens=(), layout="bert", normalization=None):
        details = {token: as_special_token(token) for token in role_tokens.values()}
        details |= {as_special_token(token).content: as_special_token(token) for token in special_tokens}
        super().__init__(vocabulary, role_tokens, details, layout)
        for token in self.role_tokens.values():
            details[token] = dataclasses.replace(details[token], special=True)
        self.special_token_details = tuple(details[token] for token in self.special_tokens)
        self.special_ids = tuple(sorted(self._ids[t.content] for t in self.special_token_details if t.special))
        self.normalization = check_normalization(normalization)
        self._finders = []
        for normalized in (False, True):
            tokens = {t: self._ids[t.content] for t in self.special_token_details if t.normalized == normalized}
            self._finders.append(SpecialTokenFinder(tokens) if tokens else None)

    @functools.cached_property
    def _ids_of(self):
        return self._graph(lambda text: self._run(text, False)[:2])

    @functools.cached_property
    def _places_of(self):
        return self._graph(lambda text: self._run(text, True))

    @staticmethod
    def _graph(function):
        # One graph for every caller: in eager mode it is much faster than its hundred operations.
        signature = [tf.TensorSpec([None], tf.string, name="text")]
        with tf.init_scope():
            return tf.function(function, input_signature=signature, autograph=False).get_concrete_function()

    @property
    def resources(self):
        """Trackables that an export must hold."""
        return (*(finder.table for finder in self._finders if finder), *self._encoder_resources)

    def _special_settings(self):
        # Without `special`, which decides no ids.
        return sorted([t.content, t.lstrip, t.rstrip, t.normalized] for t in self.special_token_details)

    def tokenize(self, text):
        """Ids, without the special tokens that `pack` puts around a text.

        Args:
            text: tf.string [N], UTF-8; or one scalar string.

        Returns:
            tf.RaggedTensor int32 [N, None]; for a scalar a tensor int32 [None].

        Raises:
            ValueError: another rank.
        """
        text, scalar = as_vector(text)
        ids, splits = self._ids_of(text)
        return ids if scalar else _ragged(ids, splits, text)

    def tokenize_with_offsets(self, text):
        """Ids, and where each token stands in the text.

        Offsets count characters (Unicode code points) of the text as given, [start, end). The
        blanks that a token begins or ends with are left out; tokens that are parts of one
        character all have its place.

        Args:
            text: tf.string [N], UTF-8; or one scalar string.

        Returns:
            (ids, starts, ends): three tf.RaggedTensor int32 [N, None]; for a scalar three
            tensors int32 [None].

        Raises:
            ValueError: another rank.
        """
        text, scalar = as_vector(text)
        ids, splits, starts, ends = self._places_of(text)
        results = (ids, starts, ends)
        return results if scalar else tuple(_ragged(values, splits, text) for values in results)

    def _run(self, text, with_offsets):
        """(ids [T], splits [N + 1], starts, ends [T] or None), characters of each text."""
        text = valid_utf8(text)
        outer = self._cut(whole_texts(text), self._finders[0])
        inner, changed = self._normalize(outer)
        inner = self._cut(inner, self._finders[1])
        ids, splits, starts, ends = self._encode(inner.text, with_offsets)
        if with_offsets:
            begin = tf.gather(inner.begins, row_ids(splits))
            starts, ends = starts + begin, ends + begin
        ids, splits, starts, ends = tf.cond(
            tf.reduce_any(inner.special >= 0),
            lambda: _insert(inner, ids, splits, starts, ends),
            lambda: (ids, splits, starts, ends),
        )
        splits = tf.gather(splits, inner.splits)  # tokens of each outer chunk
        if with_offsets:
            chunk = row_ids(splits)
            if changed is not None:
                starts, ends = tf.cond(
                    changed,
                    lambda: self._before_normalization(outer, splits, chunk, starts, ends),
                    lambda: (starts, ends),
                )
            begin = tf.gather(outer.begins, chunk)
            starts, ends = starts + begin, ends + begin
        splits = tf.gather(splits, outer.splits)
        if with_offsets:
            starts, ends = _to_characters(text, row_ids(splits), starts, ends)
        return ids, splits, starts, ends

    @staticmethod
    def _cut(chunks, finder):
        if finder is None:
            return chunks
        parts = tf.cond(
            finder.present(chunks.text), lambda: finder.split(chunks).as_tuple(), lambda: chunks.as_tuple()
        )
        return Chunks(*parts)

    def _normalize(self, chunks):
        """Chunks whose places are counted from the begin of each given one; and whether any changed."""
        text, changed = chunks.text, None
        if self.normalization:
            text = normalize(text, self.normalization)
            changed = tf.reduce_any(text != chunks.text)
        count = tf.size(text)
        length = tf.where(chunks.special < 0, tf.strings.length(text), chunks.ends - chunks.begins)
        return Chunks(text, chunks.special, tf.range(count + 1), tf.zeros([count], tf.int32), length), changed

    def _before_normalization(self, chunks, splits, chunk, starts, ends):
        """Bytes of the normalized chunks -> bytes of the chunks."""
        is_text = tf.gather(chunks.special, chunk) < 0
        # Where a special token stands, any place will do.
        start, end = places_before(
            chunks.text, self.normalization, splits, chunk, tf.where(is_text, starts, 0), tf.where(is_text, ends, 0)
        )
        return tf.where(is_text, start, starts), tf.where(is_text, end, ends)


def valid_utf8(text):
    """The texts, with U+FFFD in place of bytes that are no UTF-8."""
    return tf.cond(
        tf.reduce_all(join_bytes(text) < 128),
        lambda: text,
        lambda: tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace"),
    )


def row_ids(splits):
    """int32: the row of each value."""
    is_next = tf.scatter_nd(splits[1:, None], tf.ones_like(splits[1:]), [splits[-1] + 1])
    return tf.cumsum(is_next)[:-1]


def _insert(chunks, ids, splits, starts, ends):
    """The ids of special chunks between those of the others."""
    is_special = tf.cast(chunks.special >= 0, tf.int32)
    before = tf.concat([[0], tf.cumsum(is_special)], 0)  # special tokens before each chunk
    total = splits[-1] + before[-1]
    own = (tf.range(splits[-1]) + tf.gather(before, row_ids(splits)))[:, None]
    which = tf.where(chunks.special >= 0)[:, 0]
    new = tf.gather(splits[:-1] + before[:-1], which)[:, None]

    def mix(values, special):
        if values is None:
            return None
        mixed = tf.scatter_nd(own, values, [total])
        return tf.tensor_scatter_nd_update(mixed, new, tf.gather(special, which))

    return (
        mix(ids, chunks.special),
        splits + before,
        mix(starts, chunks.begins),
        mix(ends, chunks.ends),
    )


def _to_characters(text, rows, starts, ends):
    """Bytes of each text -> characters of it. Part of a character counts as the whole."""
    data = join_bytes(text)

    def count():
        is_first = tf.bitwise.bitwise_and(data, 0xC0) != 0x80
        # By byte: the characters that begin before it, or with it.
        begun = tf.concat([[0], tf.cumsum(tf.cast(is_first, tf.int32))], 0)
        base = tf.gather(tf.cumsum(tf.strings.length(text), exclusive=True), rows)
        first = tf.gather(begun, base)
        padded = tf.concat([begun, begun[-1:] + 1], 0)
        start = tf.gather(padded, base + starts + 1) - 1
        end = tf.where(ends > starts, tf.gather(begun, base + ends), start)
        return start - first, end - first

    return tf.cond(tf.reduce_all(data < 128), lambda: (starts, ends), count)


def _ragged(values, splits, text):
    rows = text.shape[0]
    splits = tf.ensure_shape(splits, [None if rows is None else rows + 1])
    return tf.RaggedTensor.from_row_splits(values, tf.cast(splits, tf.int64), validate=False)
