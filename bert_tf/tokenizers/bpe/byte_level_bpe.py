"""Byte-level BPE, the tokenizer of GPT-2, RoBERTa and ModernBERT, in graph ops."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from tokenizers import models

from bert_tf.errors import DataError
from bert_tf.tokenizers.bpe.gpt2_words import ByteWordSplitter, byte_alphabet
from bert_tf.tokenizers.bpe.merging import MergingTokenizer
from bert_tf.tokenizers.files import converting
from bert_tf.tokenizers.ops.strings import join_bytes, row_ids, segment_begins
from bert_tf.tokenizers.special_tokens import GPT2_ROLES, SpecialToken  # noqa: F401
from bert_tf.tokenizers.word_starts import holds_unspaced_bytes

ROBERTA_ROLES = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
_ALPHABET = byte_alphabet()
_BYTES = {character: byte for byte, character in enumerate(_ALPHABET)}
_SPACE = _ALPHABET[ord(" ")]  # Ġ


class ByteLevelBPETokenizer(MergingTokenizer):
    """Text to byte pairs, with the ids of Hugging Face's `tokenizers`; no text is unknown.

    The text is split into words by GPT-2's pattern, a space belonging to the word after it, and the bytes of each word
    are joined by the merges, the first of the list first. RoBERTa's "<mask>" includes the spaces before it. Bytes that
    are not UTF-8 act as U+FFFD, as in Python's `decode(errors="replace")`.

    Args:
        vocabulary: list of str in GPT-2's spelling of bytes ("Ġthe"); all 256 bytes are in it.
        merges: list of (left, right), str.
        add_prefix_space: put a space before each text that does not begin with one.
        normalization: None, or "NFC".
        special_tokens: further ones to recognize in text, str or `SpecialToken`.
        role_tokens: dict of "pad", "unk", "cls", "sep", "mask" -> token; a role may be absent, its id is then None.
            Default RoBERTa's; see also GPT2_ROLES.
        layout: which special tokens `pack` adds; see `layout.build_layout`.

    Raises:
        DataError: a vocabulary with a duplicate or without one of the bytes or special tokens, or a merge of or into
            what is not in it.
        ConfigError: an unknown role, layout or normalization.

    Example:
        from bert_tf.tokenizers import ByteLevelBPETokenizer, train_byte_level_bpe

        trained = train_byte_level_bpe(["low lower lowest"] * 3, 300)
        tokenizer = ByteLevelBPETokenizer(trained.vocabulary, trained.merges, add_prefix_space=True)
        tokenizer.decode(tokenizer.encode("any text <mask>"))

    Source: openai/gpt-2 src/encoder.py; fairseq's RoBERTa (layout, special tokens).
    """

    kind = "byte_level_bpe"
    _convert = converting.byte_level_bpe

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        add_prefix_space: bool = False,
        normalization: str | None = None,
        special_tokens: Sequence[str | SpecialToken] = (),
        role_tokens: Mapping[str, str] | None = None,
        layout: str = "roberta",
    ) -> None:
        roles = ROBERTA_ROLES if role_tokens is None else dict(role_tokens)
        named = {t.content if isinstance(t, SpecialToken) else t for t in special_tokens}
        mask = roles.get("mask")
        if mask is not None and mask not in named:
            special_tokens = (*special_tokens, SpecialToken(mask, lstrip=True))
        super().__init__(vocabulary, roles, special_tokens, layout, normalization)
        self.add_prefix_space = bool(add_prefix_space)
        self.between_sentences = "" if self.add_prefix_space else " "
        self._own_settings = {"add_prefix_space": self.add_prefix_space, "normalization": self.normalization}
        for byte, character in enumerate(byte_alphabet()):
            if character not in self._ids:
                raise DataError(f"the vocabulary lacks the byte {byte}, spelled '{character}'")

        self._encoder = self._make_encoder(merges)
        with tf.init_scope():
            self._byte_ids = tf.constant([self._ids[c] for c in byte_alphabet()], tf.int32)
            self._joinable = tf.constant(self._joinable_bytes())
            self._lengths = tf.constant([len(t) for t in self.vocabulary], tf.int32)  # bytes
            spaces = [(len(t) - len(t.lstrip(_SPACE)), len(t) - len(t.rstrip(_SPACE))) for t in self.vocabulary]
            self._leading, self._trailing = tf.unstack(tf.constant(spaces, tf.int32), axis=1)
        self._words = ByteWordSplitter()
        self._encoder_resources = self._encoder.resources

    def _whole_words(self):
        """Tokens that their own bytes merge into: bytes -> id."""
        merge = models.BPE(self._ids, list(self.merges)).tokenize
        spelled = {token: data for token in self.vocabulary if (data := _bytes_of(token)) is not None}
        return {data: self._ids[token] for token, data in spelled.items() if len(merge(token)) == 1}

    @functools.cached_property
    def _spelling_of(self):
        """dict of token -> bytes, for the tokens that spell bytes of text."""
        ordinary = set(self.vocabulary).difference(self.special_tokens)
        return {token: data for token in ordinary if (data := _bytes_of(token)) is not None}

    def readable(self, token_id: int) -> str:
        """The characters of a token, "Ġ가장" for "Ġê°Ģìŀ¥"; what holds a part of one is spelled as in the vocabulary."""
        token = self.id_to_token(token_id)
        try:
            text = self._spelling_of[token].decode("utf-8")
        except (KeyError, UnicodeDecodeError):
            return token
        return "".join(_ALPHABET[ord(c)] if c.isascii() else c for c in text)

    def _joinable_bytes(self):
        """bool [65536]: whether some merge can join byte b to byte a before it, at 256 a + b."""
        joinable = np.zeros((256, 256), bool)
        for left, right in self.merges:
            joinable[_BYTES[left[-1]], _BYTES[right[0]]] = True
        return joinable.reshape(-1)

    def _symbols(self, words):
        data = tf.cast(join_bytes(words), tf.int32)
        is_first = segment_begins(tf.strings.length(words))
        word = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        apart = ~tf.gather(self._joinable, data[:-1] * 256 + data[1:])
        begins = is_first | tf.concat([[True], apart], 0)
        return tf.gather(self._byte_ids, data), word, begins

    def _encode(self, text, with_offsets):
        prefixed = tf.zeros_like(text, tf.int32)
        if self.add_prefix_space:
            needed = ~tf.strings.regex_full_match(text, r"(?s)(?: \C*)?")
            text = tf.where(needed, tf.strings.join([" ", text]), text)
            prefixed = tf.cast(needed, tf.int32)
        words, word_splits = self._words.split(text)
        ids, splits = self._encoder.encode(words)
        splits = tf.gather(splits, word_splits)
        if not with_offsets:
            return ids, splits, None, None
        row = row_ids(splits)
        # All pieces, one after the other, are all bytes of the texts.
        ends = tf.cumsum(tf.gather(self._lengths, ids))
        base = tf.gather(tf.cumsum(tf.strings.length(text), exclusive=True) + prefixed, row)
        starts, ends = ends - tf.gather(self._lengths, ids) - base, ends - base
        starts = tf.minimum(starts + tf.gather(self._leading, ids), ends)
        ends = tf.maximum(ends - tf.gather(self._trailing, ids), starts)
        return ids, splits, tf.maximum(starts, 0), tf.maximum(ends, 0)

    def _continues(self, token):
        # As GPT2BPE of fairseq. The first word of a text has no space before it unless `add_prefix_space` is set.
        return not token.startswith(_SPACE)

    @functools.cached_property
    def starts_word(self) -> np.ndarray | None:
        """bool [V]: as `is_continuation`, and in scripts without spaces each token that begins a character.

        fairseq's GPT2BPE knows only the space: a Chinese sentence is one word to it. Punctuation belongs to the word
        before it, there as here.
        """
        unspaced = [holds_unspaced_bytes(self._spelling_of.get(token, b"")) for token in self.vocabulary]
        return ~self.is_continuation | np.array(unspaced)

    def _spell(self, token, first, last):
        return self._spelling_of.get(token) or token.encode("utf-8")


def _bytes_of(token):
    """The bytes that a token spells; None where it does not spell bytes."""
    return bytes(_BYTES[c] for c in token) if _BYTES.keys() >= set(token) else None
