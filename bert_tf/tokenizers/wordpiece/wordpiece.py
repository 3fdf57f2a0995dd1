"""WordPiece as BERT applies it, in graph ops: the same object prepares the data and is served."""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tokenizers import decoders

from bert_tf.errors import DataError
from bert_tf.tokenizers.character_tables import PRIVATE_USE, operator_characters
from bert_tf.tokenizers.files import converting
from bert_tf.tokenizers.files.writing import write_config, write_vocabulary
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.ops.normalization import normalize
from bert_tf.tokenizers.ops.offsets import cut
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS, SpecialToken
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

PREFIX = "##"
_DECODER = decoders.WordPiece(prefix=PREFIX, cleanup=True)
MAX_WORD_CHARACTERS = 100  # longer words are unknown, as in google-research/bert tokenization.py
_MAX_CHARACTER_BYTES = 4
_CLEANED_AWAY = re.compile(rf"[\0\s{PRIVATE_USE}]")
MAX_TOKEN_BYTES = 256  # what a FastWordpiece trie can hold


class WordPieceTokenizer(Tokenizer):
    """Text to word pieces, with the ids of Hugging Face's `BertTokenizerFast`.

    The text is cleaned (control characters, private use and U+FFFD dropped, white space made spaces), Chinese
    characters are set apart, accents stripped and letters lowercased where asked for, words split at white space and
    punctuation, and each word cut greedily into the longest pieces of the vocabulary; a word that cannot be cut, or of
    over 100 characters, is one [UNK]. Special tokens spelled in the text ("[MASK]", in exactly this case, even with
    `lowercase`) are one id each.

    Accents, Hangul: stripping accents decomposes characters first (canonical decomposition, NFD), which also takes
    Hangul syllables apart into jamo, as in the original uncased and multilingual models. `lowercase=True,
    strip_accents=False` lowercases and keeps accents and whole syllables; so does `lowercase=False`.

    Bytes that are not UTF-8 act as the U+FFFD of Python's `decode(errors="replace")`: they vanish from the ids, and each
    counts as one character in the offsets.

    Where it differs from Hugging Face's: with `strip_accents`, combining marks that stripping leaves in the text
    (spacing marks such as some viramas, and marks newer than Unicode 8) keep the order of the text, where decomposition
    would sort two in a row by their combining class.

    Args:
        vocabulary: list of str, pieces that continue a word starting with "##".
        lowercase: lowercase the text.
        strip_accents: drop accents; None does what `lowercase` does.
        tokenize_chinese_chars: make each Chinese character a word.
        special_tokens: further tokens of the vocabulary to recognize in text, each a str or a `SpecialToken`; those with
            `normalized` are looked for in the cleaned text, anywhere in a word.
        role_tokens: dict of "pad", "unk", "cls", "sep", "mask" -> token, where they are not "[PAD]", "[UNK]", "[CLS]",
            "[SEP]", "[MASK]".
        normalization: None, as BERT has it; or "NFC": decomposed Hangul and accents, as macOS writes them, are composed
            first. A vocabulary that keeps accents and was trained on composed text needs it: else every such word is
            [UNK].

    Raises:
        DataError: a vocabulary with a duplicate, an empty or an overlong token, or without a special token.
        ConfigError: a role or a normalization that does not exist.

    Example:
        from bert_tf.tokenizers import WordPieceTokenizer

        tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "paris", "is", "."])
        features = tokenizer.pack(tokenizer.tokenize(["Paris is [MASK]."]), sequence_length=8)

    Source: google-research/bert tokenization.py; the operators of tensorflow-text (Song et al., "Fast WordPiece
    Tokenization", 2021) run with tables read off `tokenizers`, see character_tables.py.
    """

    kind = "wordpiece"
    splits_punctuation = True
    drops_invalid_bytes = True

    def __init__(
        self,
        vocabulary: Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        special_tokens: Sequence[str | SpecialToken] = (),
        role_tokens: Mapping[str, str] | None = None,
        normalization: str | None = None,
    ) -> None:
        roles = STANDARD_SPECIAL_TOKENS | dict(role_tokens or {})
        super().__init__(vocabulary, roles, special_tokens, normalization=normalization)
        self.lowercase = bool(lowercase)
        self.strip_accents = self.lowercase if strip_accents is None else bool(strip_accents)
        self.tokenize_chinese_chars = bool(tokenize_chinese_chars)

        cleaning = (self.lowercase, self.strip_accents, self.tokenize_chinese_chars)
        pieces = self._operator_vocabulary(str.maketrans(operator_characters(*cleaning)[1]))
        with tf.init_scope():
            self._normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(_character_map(*cleaning)))
            self._pieces = tf_text.FastWordpieceTokenizer(
                token_out_type=tf.int32, model_buffer=tf.constant(_trie(tuple(pieces), pieces[self.unk_id]))
            )
        finder_tables = self._find_after_cleaning(self._normalizer)
        self._encoder_resources = (self._normalizer, self._pieces, *finder_tables)
        # A word of over 100 characters has at least so many continuations in a row.
        longest = self._piece_lengths[~self.is_continuation].max()
        longest_inner = self._piece_lengths.max(where=self.is_continuation, initial=1)
        self._suspicious_run = max(-(-(MAX_WORD_CHARACTERS + 1 - int(longest)) // int(longest_inner)), 1)

    def _operator_vocabulary(self, stand_ins):
        """The vocabulary in the operator's characters; what no text can become is put out of reach."""
        self._piece_lengths = np.zeros(len(self.vocabulary), np.int32)
        special, pieces = set(self.special_tokens), []
        for i, token in enumerate(self.vocabulary):
            piece = token.removeprefix(PREFIX)
            if len(token.encode("utf-8")) > MAX_TOKEN_BYTES:
                raise DataError(f"id {i} of the vocabulary has over {MAX_TOKEN_BYTES} bytes: '{token}'")
            if token in special or not piece or len(piece) > MAX_WORD_CHARACTERS or _CLEANED_AWAY.search(piece):
                # A token of several characters with punctuation among them is never matched.
                pieces.append(f"[\ue000{i}]")
            else:
                pieces.append(token.translate(stand_ins))
                self._piece_lengths[i] = len(piece)
        return pieces

    def as_word(self, token: str) -> str | None:
        """The word as cleaned text has it; None for anything else than one word."""
        word = self._normalizer.normalize(normalize(tf.constant([token]), self.normalization)).numpy()[0].decode()
        return word if word.isalnum() and not token.isspace() else None

    def _continues(self, token):
        return token.startswith(PREFIX) and token != PREFIX

    @property
    def settings(self) -> dict[str, Any]:
        settings = {
            "type": self.kind,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
            "role_tokens": self.role_tokens,
            "special_tokens": self._special_settings(),
        }
        # Left out where there is none, so that the fingerprints of tokenizers made before stay the same.
        return settings if self.normalization is None else settings | {"normalization": self.normalization}

    def _special_settings(self):
        # Names alone where nothing else is said, so that the fingerprints of tokenizers made before stay the same.
        plain = all(t == SpecialToken(t.content, special=t.special) for t in self.special_token_details)
        return sorted(self.special_tokens) if plain else super()._special_settings()

    def _encode(self, text, with_offsets):
        return self._encode_after_cleaning(self._normalizer, text, with_offsets, self._encode_cleaned)

    def _encode_cleaned(self, text, with_offsets):
        ids, splits, starts, ends = cut(self._pieces, text, with_offsets)
        return tf.cond(
            self._has_long_runs(ids),
            lambda: self._join_long_words(ids, splits, starts, ends),
            lambda: (ids, splits, starts, ends),
        )

    def _has_long_runs(self, ids):
        """Whether some word may have over 100 characters: cheap, and always true where one has."""
        run = tf.gather(tf.constant(self.is_continuation), ids)
        length = 1
        while length < self._suspicious_run:
            shift = min(length, self._suspicious_run - length)
            run = run[:-shift] & run[shift:]
            length += shift
        return tf.reduce_any(run)

    def _join_long_words(self, ids, splits, starts, ends):
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
            return joined, splits, None, None
        word_ends = tf.gather(tf.math.segment_max(ends, word), word)
        ends = tf.where(is_long, word_ends, ends)
        return joined, splits, tf.boolean_mask(starts, keep), tf.boolean_mask(ends, keep)

    def _spell(self, token, first, last):
        # The clean-up of Hugging Face's decoder ("isn't" without spaces) changes each token by itself.
        before = [] if first else ["a"]
        return _DECODER.decode([*before, token])[len(before) :].encode("utf-8")

    def save(self, folder: StrPath) -> None:
        """Writes tokenizer.json, which Hugging Face's classes run, vocab.txt and tokenizer_config.json.

        Raises:
            DataError: a token that holds a line break, which vocab.txt cannot.
            RunDirectoryError: the folder cannot be written.
        """
        write_vocabulary(self, folder)
        settings: dict[str, Any] = {
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
        }
        settings |= {} if self.normalization is None else {"normalization": self.normalization}
        write_config(self, folder, settings, converting.wordpiece(self))


@functools.lru_cache(maxsize=8)
def _character_map(lowercase, strip_accents, tokenize_chinese_chars):
    return build_character_map(operator_characters(lowercase, strip_accents, tokenize_chinese_chars)[0])


@functools.lru_cache(maxsize=8)  # a run opens its tokenizer several times
def _trie(pieces, unknown):
    # Bytes bound characters only from above: _join_long_words counts characters.
    longest = _MAX_CHARACTER_BYTES * MAX_WORD_CHARACTERS
    try:
        model = tf_text.build_fast_wordpiece_model(list(pieces), longest, PREFIX, unknown, False, False)
    except RuntimeError as error:
        raise DataError(
            f"no text can be cut by this vocabulary of {len(pieces)} pieces ({error}); give a whole one"
        ) from None
    return np.frombuffer(model, np.uint8)
