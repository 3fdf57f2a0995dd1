"""WordPiece as BERT applies it, in graph ops: the same object prepares the data and is served."""

import functools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tokenizers import decoders

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.base import Tokenizer, as_vector, check_roles
from bert_tf.tokenizers.characters import is_private, operator_characters
from bert_tf.tokenizers.composition import check_normalization, normalize, places_before
from bert_tf.tokenizers.normalizer_model import build_normalizer_model
from bert_tf.tokenizers.special_tokens import escape
from bert_tf.tokenizers.tokenizer_json_writing import write_wordpiece_json

PREFIX = "##"
MAX_WORD_CHARACTERS = 100  # longer words are unknown, as in google-research/bert tokenization.py
_MAX_CHARACTER_BYTES = 4
_MAX_TOKEN_BYTES = 256  # what a FastWordpiece trie can hold
# A special token in the text is rewritten as one character of private use, the first it has
# being this. Cleaning drops private use, so no other text can become one.
_FIRST_MARK = 0xE000
_MAX_MARKS = 0x1000
_DROPPED = "\x01"  # a character that cleaning drops


class WordPieceTokenizer(Tokenizer):
    """Text to word pieces, with the ids of Hugging Face's `BertTokenizerFast`.

    The text is cleaned (control characters, private use and U+FFFD dropped, white space made
    spaces), Chinese characters are set apart, accents stripped and letters lowercased where
    asked for, words split at white space and punctuation, and each word cut greedily into the
    longest pieces of the vocabulary; a word that cannot be cut, or of over 100 characters, is
    one [UNK]. Special tokens spelled in the text ("[MASK]", in exactly this case, even with
    `lowercase`) are one id each.

    Accents, Hangul: stripping accents decomposes characters first (canonical decomposition, NFD),
    which also takes Hangul syllables apart into jamo, as in the original uncased and
    multilingual models. `lowercase=True, strip_accents=False` lowercases and keeps accents and
    whole syllables; so does `lowercase=False`.

    Bytes that are no UTF-8 act as the U+FFFD of Python's `decode(errors="replace")`: they vanish
    from the ids, and each counts as one character in the offsets.

    Where it differs from Hugging Face's: with `strip_accents`, combining marks that stripping
    leaves in place (spacing marks such as some viramas, and marks newer than Unicode 8) keep the
    order of the text, where decomposition would sort two in a row by their combining class.

    Args:
        vocabulary: list of str, pieces that continue a word starting with "##".
        lowercase: lowercase the text.
        strip_accents: drop accents; None does what `lowercase` does.
        tokenize_chinese_chars: make each Chinese character a word.
        special_tokens: further tokens of the vocabulary to recognise in text.
        role_tokens: dict of "pad", "unk", "cls", "sep", "mask" -> token, where they are not
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]".
        normalization: None, as BERT has it; or "NFC": decomposed Hangul and accents, as macOS writes them,
            are composed before anything else. What a vocabulary needs that keeps accents and was
            trained on composed text: else every such word is [UNK].

    Raises:
        DataError: a vocabulary with a duplicate, an empty or an overlong token, or without a
            special token.
        ConfigError: a role or a normalization that does not exist.

    Example:
        tokenizer = WordPieceTokenizer(vocabulary)
        features = tokenizer.pack(tokenizer.tokenize(tf.constant(["Paris is [MASK]."])))

    Source: google-research/bert tokenization.py; the operators of tensorflow-text (Song et al.,
    "Fast WordPiece Tokenization", 2021) run with tables read off `tokenizers`, see characters.py.
    """

    splits_punctuation = True

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        tokenize_chinese_chars=True,
        special_tokens=(),
        role_tokens=(),
        normalization=None,
    ):
        super().__init__(vocabulary, check_roles(dict(role_tokens)), special_tokens)
        self.normalization = check_normalization(normalization)
        self.lowercase = bool(lowercase)
        self.strip_accents = self.lowercase if strip_accents is None else bool(strip_accents)
        self.tokenize_chinese_chars = bool(tokenize_chinese_chars)

        cleaning = (self.lowercase, self.strip_accents, self.tokenize_chinese_chars)
        if len(self.special_tokens) > _MAX_MARKS:
            raise DataError(f"{len(self.special_tokens)} special tokens; at most {_MAX_MARKS}")
        marks = {t: chr(_FIRST_MARK + k) for k, t in enumerate(self.special_tokens)}
        _, stand_ins = operator_characters(*cleaning)
        pieces = self._operator_vocabulary(marks, str.maketrans(stand_ins))
        with tf.init_scope():
            self._normalizer = tf_text.FastBertNormalizer(
                model_buffer=tf.constant(_normalizer_model(*cleaning, len(marks)))
            )
            model = tf_text.build_fast_wordpiece_model(
                pieces,
                # Bytes bound characters only from above: _join_long_words counts characters.
                _MAX_CHARACTER_BYTES * MAX_WORD_CHARACTERS,
                PREFIX,
                marks[self.role_tokens["unk"]],
                False,
                False,
            )
            self._pieces = tf_text.FastWordpieceTokenizer(
                token_out_type=tf.int32,
                model_buffer=tf.constant(np.frombuffer(model, np.uint8)),
            )
        self.resources = (self._normalizer, self._pieces)

        # Leftmost first, then longest, as in `tokenizers`: one search with the longer tokens first
        # flags where each begins, and only what is flagged is rewritten.
        by_length = sorted(marks.items(), key=lambda item: -len(item[0]))
        alternatives = "|".join(escape(token) for token, _ in by_length)
        flag = chr(_FIRST_MARK + len(marks))
        raw_marks = rf"[\x{{{_FIRST_MARK:X}}}-\x{{{ord(flag):X}}}]"
        self._mark_steps = [
            (raw_marks, _DROPPED),
            (f"({alternatives})", rf"{flag}\1"),
            # As many characters as before keep the offsets; the dropped ones say nothing.
            *((flag + escape(token), mark + _DROPPED * (len(token) - 1)) for token, mark in by_length),
        ]
        # \C is any byte: . would stop at bytes that are no UTF-8.
        self._needs_marks = rf"(?s)\C*(?:{alternatives}|{raw_marks})\C*"
        self._mark_lengths = np.array([len(token) for token in marks], np.int32)
        # A word of over 100 characters has at least so many continuations in a row.
        longest = self._piece_lengths[~self.is_continuation].max()
        longest_inner = self._piece_lengths.max(where=self.is_continuation, initial=1)
        self._suspicious_run = max(-(-(MAX_WORD_CHARACTERS + 1 - int(longest)) // int(longest_inner)), 1)

    def _operator_vocabulary(self, marks, stand_ins):
        """The vocabulary in the operator's characters; what no text can become is put out of reach."""
        self._piece_lengths = np.zeros(len(self.vocabulary), np.int32)
        pieces = []
        for i, token in enumerate(self.vocabulary):
            piece = token.removeprefix(PREFIX)
            if len(token.encode("utf-8")) > _MAX_TOKEN_BYTES:
                raise DataError(f"id {i} of the vocabulary has over {_MAX_TOKEN_BYTES} bytes: '{token}'")
            if token in marks:
                pieces.append(marks[token])
            elif (
                not piece
                or len(piece) > MAX_WORD_CHARACTERS
                or any(c == "\0" or c.isspace() or is_private(c) for c in piece)
            ):
                # A token of several characters with punctuation among them is never matched.
                pieces.append(f"[{chr(_FIRST_MARK + _MAX_MARKS)}{i}]")
            else:
                pieces.append(token.translate(stand_ins))
                self._piece_lengths[i] = len(piece)
        return pieces

    @functools.cached_property
    def is_continuation(self):
        """bool [V]: True for the pieces that continue a word ("##...")."""
        return np.array(
            [
                token.startswith(PREFIX) and len(token) > len(PREFIX) and token not in self.special_tokens
                for token in self.vocabulary
            ]
        )

    @property
    def settings(self):
        return {
            "type": "wordpiece",
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
            "role_tokens": self.role_tokens,
            "special_tokens": sorted(self.special_tokens),
        } | self._own_normalization

    @property
    def _own_normalization(self):
        # Left out where there is none, so that the fingerprints of tokenizers made before stay the same.
        return {} if self.normalization is None else {"normalization": self.normalization}

    def tokenize(self, text):
        """Word piece ids, without [CLS] and [SEP].

        Args:
            text: tf.string [N], UTF-8; or one scalar string.

        Returns:
            tf.RaggedTensor int32 [N, None]; for a scalar a tensor int32 [None].

        Raises:
            ValueError: another rank.
        """
        text, scalar = as_vector(text)
        text = normalize(self._mark_special_tokens(text), self.normalization)
        normalized = self._normalizer.normalize(text)
        ids = self._pieces.tokenize(normalized)
        values, splits = tf.cond(
            self._has_long_runs(ids.values),
            lambda: self._join_long_words(ids.values, ids.row_splits)[:2],
            lambda: (ids.values, ids.row_splits),
        )
        return values if scalar else tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def tokenize_with_offsets(self, text):
        """Word piece ids, and where each piece stands in the text.

        Offsets count characters (Unicode code points) of the text as given, [start, end):
        `text[start:end]` in Python is what the piece was made from, before lowercasing and
        stripping.

        Args:
            text: tf.string [N], UTF-8; or one scalar string.

        Returns:
            (ids, starts, ends): three tf.RaggedTensor int32 [N, None]; for a scalar three
            tensors int32 [None].

        Raises:
            ValueError: another rank.
        """
        text, scalar = as_vector(text)
        text = self._mark_special_tokens(text)
        composed = normalize(text, self.normalization)
        normalized, origins = self._normalizer.normalize_with_offsets(composed)
        ids, starts, ends = self._pieces.tokenize_with_offsets(normalized)
        values, splits, starts, ends = tf.cond(
            self._has_long_runs(ids.values),
            lambda: self._join_long_words(ids.values, ids.row_splits, starts.values, ends.values),
            lambda: (ids.values, ids.row_splits, starts.values, ends.values),
        )
        starts, ends = self._to_characters(text, composed, origins, splits, starts, ends)
        results = (values, starts, ends)
        if scalar:
            return results
        return tuple(tf.RaggedTensor.from_row_splits(r, splits, validate=False) for r in results)

    def _mark_special_tokens(self, text):
        """Each special token that the text spells becomes its mark, at no cost where there is none."""

        def mark():
            marked = text
            for pattern, replacement in self._mark_steps:
                marked = tf.strings.regex_replace(marked, pattern, replacement)
            return marked

        needed = tf.strings.regex_full_match(text, self._needs_marks)
        return tf.cond(tf.reduce_any(needed), mark, lambda: tf.identity(text))

    def _has_long_runs(self, ids):
        """Whether some word may have over 100 characters: cheap, and never wrong with no."""
        run = tf.gather(tf.constant(self.is_continuation), ids)
        length, wanted = 1, self._suspicious_run
        while length < wanted:
            shift = min(length, wanted - length)
            run = run[:-shift] & run[shift:]
            length += shift
        return tf.reduce_any(run)

    def _join_long_words(self, ids, splits, starts=None, ends=None):
        """Makes each word of over 100 characters one [UNK] that spans it."""
        is_first = ~tf.gather(tf.constant(self.is_continuation), ids)
        word = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        lengths = tf.math.segment_sum(tf.gather(tf.constant(self._piece_lengths), ids), word)
        is_long = tf.gather(lengths > MAX_WORD_CHARACTERS, word)
        keep = is_first | ~is_long
        joined = tf.boolean_mask(tf.where(is_long, self.unk_id, ids), keep)
        kept_before = tf.cumsum(tf.cast(tf.concat([[False], keep], 0), splits.dtype))
        splits = tf.gather(kept_before, splits)
        if starts is None:
            return joined, splits
        word_ends = tf.gather(tf.math.segment_max(ends, word), word)
        ends = tf.where(is_long, word_ends, ends)
        return joined, splits, tf.boolean_mask(starts, keep), tf.boolean_mask(ends, keep)

    def _to_characters(self, text, composed, origins, splits, starts, ends):
        """Byte offsets into the normalized text -> code point offsets into the text.

        Args:
            text, composed: tf.string [N], before and after Unicode normalization.
            origins: ragged int64 [N, bytes of the normalized text + 1], byte offsets into `composed`.
            splits, starts, ends: int64, rows of the pieces, and bytes of the normalized text.
        """
        row = tf.ragged.row_splits_to_segment_ids(splits)
        first = tf.gather(origins.row_splits, row)
        start_byte = tf.gather(origins.values, first + starts)
        last_byte = tf.gather(origins.values, first + ends - 1)
        if self.normalization is not None:
            start_byte, last_byte = tf.cond(
                tf.reduce_any(composed != text),
                lambda: self._before_composition(text, splits, row, start_byte, last_byte),
                lambda: (start_byte, last_byte),
            )
        characters = tf.strings.length(text, unit="UTF8_CHAR")
        one_byte_each = tf.reduce_all(characters == tf.strings.length(text))  # then no mark either
        starts, ends = tf.cond(
            one_byte_each,
            lambda: (start_byte, last_byte + 1),
            lambda: self._count_characters(text, row, start_byte, last_byte),
        )
        return tf.cast(starts, tf.int32), tf.cast(ends, tf.int32)

    def _before_composition(self, text, splits, row, start_byte, last_byte):
        """Bytes of the composed text -> bytes of the text: the first, and one of the last character."""
        starts, ends = (tf.cast(values, tf.int32) for values in (start_byte, last_byte + 1))
        starts, ends = places_before(text, self.normalization, splits, tf.cast(row, tf.int32), starts, ends)
        return tf.cast(starts, tf.int64), tf.cast(ends, tf.int64) - 1

    def _count_characters(self, text, row, start_byte, last_byte):
        codes, positions = tf.strings.unicode_decode_with_offsets(text, "UTF-8", errors="replace")
        # All rows on one axis, so that one search serves them.
        text_start = tf.cumsum(tf.cast(tf.strings.length(text), tf.int64), exclusive=True)
        character_starts = positions.values + tf.gather(text_start, positions.value_rowids())
        row_start = tf.gather(text_start, row)

        def character(byte):
            found = tf.searchsorted(character_starts, row_start + byte, side="right", out_type=tf.int64)
            return found - 1

        start, end = character(start_byte), character(last_byte) + 1
        mark = tf.gather(codes.values, start) - _FIRST_MARK
        is_mark = (mark >= 0) & (mark < len(self._mark_lengths))
        mark_length = tf.gather(tf.constant(self._mark_lengths), tf.where(is_mark, mark, 0))
        end = tf.where(is_mark, start + tf.cast(mark_length, tf.int64), end)
        row_character = tf.gather(codes.row_splits, row)
        return start - row_character, end - row_character

    def decode(self, ids, skip_special_tokens=False):
        """Readable text of ids: pieces joined, spaces before punctuation removed.

        What cleaning dropped does not come back. Source: the WordPiece decoder of `tokenizers`.
        """
        tokens = [
            self.id_to_token(int(i)) for i in ids if not (skip_special_tokens and int(i) in self.special_ids)
        ]
        return decoders.WordPiece(prefix=PREFIX, cleanup=True).decode(tokens) if tokens else ""

    def save(self, folder):
        """Writes vocab.txt and tokenizer_config.json, which Hugging Face's BertTokenizer reads too.

        With a normalization, which BertTokenizer does not have, tokenizer.json as well: Hugging Face's
        PreTrainedTokenizerFast, which the configuration then names, reads it and gives the same ids.

        Raises:
            DataError: a token that holds a line break, which vocab.txt cannot.
            RunDirectoryError: the folder cannot be written.
        """
        for i, token in enumerate(self.vocabulary):
            if "\n" in token or "\r" in token:
                raise DataError(f"id {i} of the vocabulary holds a line break: {token!r}")
        with atomic_write(Path(folder) / "vocab.txt") as file:
            file.write("".join(f"{token}\n" for token in self.vocabulary))
        roles = self.role_tokens.values()
        config = {
            "tokenizer_class": "BertTokenizer" if self.normalization is None else "PreTrainedTokenizerFast",
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
            **{f"{role}_token": token for role, token in self.role_tokens.items()},
            "additional_special_tokens": [t for t in self.special_tokens if t not in roles],
        } | self._own_normalization
        if self.normalization is not None:
            write_wordpiece_json(self, folder)
        with atomic_write(Path(folder) / "tokenizer_config.json") as file:
            json.dump(config, file, ensure_ascii=False, indent=2)
            file.write("\n")


@functools.lru_cache(maxsize=8)
def _normalizer_model(lowercase, strip_accents, tokenize_chinese_chars, num_marks):
    table, _ = operator_characters(lowercase, strip_accents, tokenize_chinese_chars)
    marks = map(chr, range(_FIRST_MARK, _FIRST_MARK + num_marks))
    return build_normalizer_model(table | {mark: f" {mark} " for mark in marks})
