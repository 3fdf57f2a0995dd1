"""The bytes of UTF-8 as tokens, as ByT5 reads them, in graph ops."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tokenizers.files import converting
from bert_tf.tokenizers.files.writing import write_config
from bert_tf.tokenizers.ops.strings import join_bytes, row_ids
from bert_tf.tokenizers.sentencepiece.families import sentinels as sentinel_names
from bert_tf.tokenizers.special_tokens import SpecialToken, as_special_token
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

BYTE_ROLES = {"pad": "<pad>", "sep": "</s>", "unk": "<unk>"}  # in the order of their ids
EXTRA_IDS = 125
SENTINELS = ("bytes", "extra_ids")
_FIRST = len(BYTE_ROLES)  # the id of byte 0
_NEVER_IN_UTF8 = (0xC0, 0xC1, *range(0xF5, 0x100))


def byte_vocabulary(extra_ids: int = EXTRA_IDS) -> list[str]:
    """The tokens of ByT5 as a list of str; the position is the id.

    <pad>, </s>, <unk>, 256 bytes, <extra_id_0>, <extra_id_1>, ... Visible characters of ASCII are spelled as
    themselves, the other bytes as SentencePiece spells them: "<0x20>".
    """
    letters = (chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256))
    return [*BYTE_ROLES.values(), *letters, *reversed(sentinel_names(extra_ids))]


class ByteTokenizer(Tokenizer):
    """Text to the bytes of its UTF-8, as ByT5 reads it: the id of a byte is its value + 3. No text is unknown.

    Ids 0, 1 and 2 are <pad>, </s> and <unk>. After the 256 bytes come <extra_id_0> (259), <extra_id_1> (260), ... as
    in Hugging Face's ByT5Tokenizer: they ascend, where T5's descend. With 125 of them the vocabulary has the 384
    rows of the published checkpoints. There is no vocabulary to train.

    The published checkpoints were pretrained without these 125 tokens, whose rows are untrained. Their sentinels are
    the last byte ids: 258 is the first, 257 the second. The paper allows 100 of these, but most are also bytes of
    text. Here only the eleven that no UTF-8 text has (0xFF to 0xF5, ids 258 to 248) are `sentinel_ids`; ByT5's
    inputs of 1024 bytes with spans of 20 need nine.

    `decode` leaves out bytes that are not UTF-8, half a character or a sentinel, as Python's `errors="ignore"`. Bytes of
    a text that are not UTF-8 act as U+FFFD, as in the other tokenizers. The offsets of white space of ASCII are empty.

    Args:
        extra_ids: how many tokens <extra_id_0>, ... follow the bytes.
        sentinels: which ids span corruption uses. "bytes": those of the published checkpoints. "extra_ids":
            <extra_id_0>, <extra_id_1>, ..., for a model of your own that needs more than eleven.
        special_tokens: further ones to recognize in text, str or `SpecialToken`, with ids after the <extra_id_...>; or
            the details of those that are there anyway. <pad>, </s> and <unk> include the white space around them by
            default.

    Raises:
        ConfigError: `extra_ids` below 0 or above 10,000, or an unknown name in `sentinels`.

    Example:
        from bert_tf.tokenizers import ByteTokenizer

        tokenizer = ByteTokenizer()
        tokenizer.encode("한")  # [240, 152, 159]: the bytes ED 95 9C
        tokenizer.sentinel_ids[:3]  # [258, 257, 256]

    Source: Xue et al. 2021 (arXiv:2105.13626), section 3.1; seqio's ByteVocabulary, which google-research/byt5 tasks.py
    builds without extra ids; Hugging Face's ByT5Tokenizer (<extra_id_...> and `decode`).
    """

    kind = "byte"
    marks_words = False
    between_sentences = " "
    decoding_errors = "ignore"

    def __init__(
        self, extra_ids: int = EXTRA_IDS, sentinels: str = "bytes", special_tokens: Sequence[str | SpecialToken] = ()
    ) -> None:
        if sentinels not in SENTINELS:
            raise ConfigError(f"sentinels is '{sentinels}'{nearest(str(sentinels), SENTINELS)}")
        self.extra_ids, self.sentinels = extra_ids, sentinels
        vocabulary = byte_vocabulary(extra_ids)
        self._bytes = {token: bytes([byte]) for byte, token in enumerate(vocabulary[_FIRST : _FIRST + 256])}
        role_details = [SpecialToken(token, lstrip=True, rstrip=True) for token in BYTE_ROLES.values()]
        details = [as_special_token(token) for token in special_tokens]
        byte_tokens = set(vocabulary)
        added = [token.content for token in details if token.content not in byte_tokens]
        extra = vocabulary[_FIRST + 256 :]
        super().__init__([*vocabulary, *added], BYTE_ROLES, (*role_details, *extra, *details), layout="t5")
        self._encoder_resources = ()

    def grown(self, new: Sequence[str]) -> dict[str, Any]:
        """As of every tokenizer: nothing, the special tokens say it."""
        return {}

    def _encode(self, text, with_offsets):
        data, lengths = tf.cast(join_bytes(text), tf.int32), tf.strings.length(text)
        splits = tf.concat([[0], tf.cumsum(lengths)], 0)
        if not with_offsets:
            return data + _FIRST, splits, None, None
        starts = tf.range(tf.size(data)) - tf.gather(splits, row_ids(splits))
        is_space = (data == 0x20) | ((data >= 0x09) & (data <= 0x0D))
        return data + _FIRST, splits, starts + tf.cast(is_space, tf.int32), starts + 1

    @property
    def sentinel_ids(self) -> Sequence[int]:
        """The ids of sentinels, the first one first: see `sentinels`."""
        if self.sentinels == "extra_ids":
            return super().sentinel_ids
        return [_FIRST + byte for byte in range(0xFF, 0xF4, -1)]

    @property
    def random_ids(self) -> np.ndarray:
        """int32: the ids that a random replacement may draw: the bytes that a text can have."""
        return np.array([_FIRST + byte for byte in range(256) if byte not in _NEVER_IN_UTF8], np.int32)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "extra_ids": self.extra_ids,
            "sentinels": self.sentinels,
            "special_tokens": self._special_settings(),
        }

    def _spell(self, token, first, last):
        return self._bytes.get(token) or token.encode("utf-8")

    def save(self, folder: StrPath) -> None:
        """Writes tokenizer.json, which Hugging Face's classes run, and tokenizer_config.json; RunDirectoryError if it
        cannot.

        Only this library reads `sentinels` from it.
        """
        settings = {"extra_ids": self.extra_ids, "sentinels": self.sentinels}
        write_config(self, folder, settings, converting.bytes_alone(self))
