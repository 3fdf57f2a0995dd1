"""White space as the `tokenizers` package treats it before a unigram model, where it differs from SentencePiece.

"authors"     SentencePiece's own way, as in the authors' code: nothing to do here.
"words"       words are separated by any white space (WhitespaceSplit);
"stripped"    by U+0020 alone, and white space at the end of a text is dropped;
"last_blank"  by U+0020 alone, and white space at the end of a text is one more piece, U+2581.

The last three are what Hugging Face's converters wrote into tokenizer.json, in this order over the years.
What counts as white space is decided after the model's own table of characters.
"""

from typing import Any

import tensorflow as tf
from tokenizers import normalizers

from bert_tf.tokenizers.character_tables import white_space
from bert_tf.types import Tensor

PRE_TOKENIZATIONS = ("authors", "words", "stripped", "last_blank")


class PreTokenization:
    """One of `PRE_TOKENIZATIONS` as graph operations; `charsmap` (bytes) is the table that SentencePiece will apply."""

    def __init__(self, name: str, charsmap: bytes) -> None:
        self._replacements, self._last_space = [], None
        if name == "authors":
            return
        spaces, dropped, unchanged = _classes(charsmap)
        if name == "words":
            for length in (1, 2, 3):  # as many spaces as the character has bytes, so that offsets stay
                some = "".join(c for c in unchanged if len(c.encode()) == length)
                self._replacements += [(_any_of(some), " " * length)] * bool(some)
        elif name == "stripped" and unchanged:
            self._replacements = [(f"{_any_of(spaces + dropped + unchanged)}+$", "")]
        elif name == "last_blank":
            self._last_space = rf"(?s)\C*{_any_of(spaces)}" + f"{_any_of(dropped)}*" * bool(dropped)

    def replace(self, text: Tensor) -> Tensor:
        """The texts that SentencePiece is to be given; tf.string [N]."""
        for pattern, result in self._replacements:
            text = tf.strings.regex_replace(text, pattern, result)
        return text

    def append_last_space(
        self, text: Tensor, cleaned: Tensor, space_id: int, ids: Tensor, splits: Tensor, starts: Any, ends: Any
    ) -> Any:
        """Appends the piece of a space where a text ends with one.

        Args:
            text, cleaned: tf.string [N], before cleaning and after `replace`.
            space_id: int.
            ids, splits, starts, ends: what `cleaned` became; see `Tokenizer`.
        """
        if self._last_space is None:
            return ids, splits, starts, ends
        where = tf.strings.regex_full_match(cleaned, self._last_space)
        lengths = tf.boolean_mask(tf.strings.length(text), where)
        rows = tf.RaggedTensor.from_row_lengths(tf.fill(tf.shape(lengths), space_id), tf.cast(where, tf.int32))

        def append(values, last):
            values = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
            return tf.concat([values, rows.with_values(last)], 1)

        new = append(ids, rows.values)
        if starts is not None:
            starts, ends = append(starts, lengths).values, append(ends, lengths).values
        return new.values, new.row_splits, starts, ends


def _classes(charsmap):
    """(spaces, dropped, kept): the characters whose last is a space after the table, those that vanish, and the
    white space that stays as it is; three str."""
    normalize = normalizers.Precompiled(charsmap).normalize_str if charsmap else str
    after = {c: normalize(c) for c in map(chr, (*range(0x3001), 0xFEFF, 0xFFFD))}
    spaces = "".join(c for c, result in after.items() if result == " ")
    dropped = "".join(c for c, result in after.items() if not result)
    return spaces, dropped, "".join(sorted(c for c in white_space() if c != " " and after[c] == c))


def _any_of(characters):
    """A class of characters as a pattern of RE2."""
    return "[" + "".join(rf"\x{{{ord(c):x}}}" for c in characters) + "]"
