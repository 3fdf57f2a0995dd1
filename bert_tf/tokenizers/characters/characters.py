"""Words as the bytes of their UTF-8, a row of ids for each, as ELMo reads them, in graph ops."""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.character_tables import cleaned_characters
from bert_tf.tokenizers.files.writing import write_config
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.ops.model_rows import pack
from bert_tf.tokenizers.ops.offsets import clean, source_bytes, to_characters
from bert_tf.tokenizers.ops.splitting import cut_at, split_by_pattern
from bert_tf.tokenizers.ops.strings import row_ids
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath, Tensor

CHARACTER_ROLES = {"pad": "<pad>", "unk": "<pad>", "cls": "<S>", "sep": "</S>"}
MAX_CHARACTERS = 50
_MARKS = ("<S>", "</S>", "<bow>", "<eow>", "<fill>")
_BYTE, _BEGIN, _END, _FILL = 1, 259, 260, 261  # the id of byte 0, and of the last three marks
_SPACE = r"\x09-\x0D\x1C-\x20\x{85}\p{Z}"
_PUNCTUATION = r"\p{P}$+<=>^`|~"


def character_vocabulary() -> list[str]:
    """The 262 characters of ELMo as a list of str; the position is the id.

    <pad>, 256 bytes, <S>, </S>, <bow>, <eow>, <fill>. Visible characters of ASCII are spelled as themselves, other
    bytes as "<0x20>".
    """
    letters = (chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256))
    return ["<pad>", *letters, *_MARKS]


class CharacterTokenizer(Tokenizer):
    """Text to words, and each word to a row of characters: `token_ids` of [N, S, 50].

    A word becomes <bow>, the bytes of its UTF-8, <eow>, and <fill> up to `max_characters`; of a longer word the first
    48 bytes are kept. `pack` puts the words <S> and </S> around each text. The id of a byte is its value + 1, because
    id 0 is all that a padding word has; bilm-tf counts from 0 and adds 1 for its model. No word is unknown, and no text
    is a special token.

    The published models read text whose punctuation stands apart, "A film ." Give such text, or lists of words, and
    leave `punctuation` as it is; for raw text set it. They read case and accents. A model pretrained on words without
    them (`bert-tf vocab --kind words` without --cased) has `lowercase`.

    Args:
        max_characters: ids of a word, its marks among them.
        punctuation: whether each punctuation mark of a text is a word of its own. False: words end at white space.
        lowercase: lowercase the text.
        strip_accents: drop accents; None does what `lowercase` does.

    Raises:
        ConfigError: fewer than 3 characters, or more than 1000.

    Example:
        from bert_tf.tokenizers import CharacterTokenizer

        tokenizer = CharacterTokenizer(max_characters=8)
        tokenizer.encode("A film")[0]  # [259, 66, 260, 261, 261, 261, 261, 261]
        tokenizer.decode(tokenizer.encode("A film"))  # 'A film'

    Source: Peters et al. 2018 (arXiv:1802.05365); allenai/bilm-tf `data.py`, `UnicodeCharsVocabulary`.
    """

    kind = "characters"
    marks_words = False
    finds_special_tokens = False
    decoding_errors = "ignore"

    def __init__(
        self,
        max_characters: int = MAX_CHARACTERS,
        punctuation: bool = False,
        lowercase: bool = False,
        strip_accents: bool | None = None,
    ) -> None:
        if not 3 <= max_characters <= 1000:
            raise ConfigError(f"max_characters is {max_characters}; a word has 3 to 1000, its two marks among them")
        self.max_characters, self.punctuation = max_characters, punctuation
        self.lowercase, self.strip_accents = lowercase, lowercase if strip_accents is None else strip_accents
        self.token_shape = (max_characters,)
        super().__init__(character_vocabulary(), CHARACTER_ROLES, layout="elmo")
        self._finders = [None, None]
        self._normalizer = None
        if self.lowercase or self.strip_accents:
            table = cleaned_characters(self.lowercase, self.strip_accents, tokenize_chinese_chars=False)
            with tf.init_scope():
                self._normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(build_character_map(table)))
        self._encoder_resources = () if self._normalizer is None else (self._normalizer,)

    @property
    def unknown_token(self) -> list[int]:
        return [self.pad_id] * self.max_characters

    def _run(self, text, with_offsets):
        between, kept_separators = (
            (f"[{_SPACE}{_PUNCTUATION}]", f"[{_PUNCTUATION}]") if self.punctuation else (f"[{_SPACE}]", "")
        )
        cleaned, origins = (text, None) if self._normalizer is None else clean(self._normalizer, text, with_offsets)
        begins, ends, splits = split_by_pattern(cleaned, between, kept_separators)
        characters = self._characters(cut_at(cleaned, begins, ends, splits))
        if not with_offsets:
            return characters, splits, None, None
        rows = row_ids(splits)
        if origins is not None:
            begins, ends = source_bytes(origins, rows, begins, ends)
        return characters, splits, *to_characters(text, rows, begins, ends)

    def _characters(self, words):
        """tf.string [T] -> int32 [T, max_characters]."""
        room = self.max_characters - 2
        data = tf.io.decode_raw(words, tf.uint8, fixed_length=room)
        ids = tf.pad(tf.cast(data, tf.int32) + _BYTE, [[0, 0], [1, 1]], constant_values=_BEGIN)
        lengths = tf.minimum(tf.strings.length(words), room)[:, None]
        column = tf.range(self.max_characters)[None]
        ids = tf.where(column == lengths + 1, _END, ids)
        return tf.where(column > lengths + 1, _FILL, ids)

    def pack(
        self, first: Tensor, second: Tensor | None = None, sequence_length: int = 128, dynamic: bool = False
    ) -> dict[str, Tensor]:
        """The words of the texts with <S> and </S> around them, in rows of `sequence_length` words; see `model_rows.pack`.

        Returns:
            As `model_rows.pack`, with `token_ids` int32 [N, S, max_characters].
        """
        # Words are packed by their numbers in one table, which begins with the special words, by their ids.
        texts = [part for part in (first, second) if part is not None]
        table = tf.concat([self.special_words, *(part.values for part in texts)], axis=0)
        begin, numbers = self.vocabulary_size, []
        for part in texts:
            count = tf.shape(part.values)[0]
            numbers.append(part.with_values(tf.range(count) + begin))
            begin = begin + count
        settings: dict[str, Any] = {"layout": self.layout, "pad_id": self.pad_id, "sequence_length": sequence_length}
        features = pack(*numbers, **settings, dynamic=dynamic)
        return features | {"token_ids": tf.gather(table, features["token_ids"])}

    @property
    def special_words(self) -> dict[str, np.ndarray]:
        """int32 [V, max_characters]: the word of one special character for each id, padding for <pad>."""
        ids = tf.range(self.vocabulary_size)[:, None]
        marks = tf.constant([[_END, *[_FILL] * (self.max_characters - 3)]])
        words = tf.concat([tf.fill(tf.shape(ids), _BEGIN), ids, tf.repeat(marks, self.vocabulary_size, axis=0)], axis=1)
        return tf.where(ids == self.pad_id, self.pad_id, words)

    def decode(self, ids: Any, skip_special_tokens: bool = False, continues: bool = False) -> str:
        """The words of rows of characters, with spaces between them, and with `continues` before them."""
        spelled = self._spellings(skip_special_tokens)
        rows = [[int(i) for i in row] for row in ids]
        for i in (i for row in rows for i in row):
            if not 0 <= i < len(spelled):
                raise DataError(f"id {i} is not a character; ids are 0 to {len(spelled) - 1}")
        words = [word for word in (b"".join(spelled[i] for i in row) for row in rows) if word]
        return (b" " * bool(continues and words) + b" ".join(words)).decode("utf-8", self.decoding_errors)

    def detokenize(
        self,
        ids: Tensor,
        padding_mask: Tensor | None = None,
        skip_special_tokens: bool = False,
        continues: bool = False,
    ) -> Tensor:
        """What `decode` gives for each text: of a tf.RaggedTensor [N, None, max_characters], or a tensor with a mask."""
        if padding_mask is not None:
            ids = tf.ragged.boolean_mask(tf.cast(ids, tf.int32), padding_mask)
        words = tf.strings.reduce_join(
            tf.gather(tf.constant(self._spellings(skip_special_tokens)), ids.values), axis=-1
        )
        words = tf.ragged.boolean_mask(ids.with_values(words), ids.with_values(tf.strings.length(words) > 0))
        texts = tf.strings.reduce_join(words, axis=-1, separator=" ")
        if continues:
            texts = tf.where(words.row_lengths() > 0, tf.constant(" ") + texts, texts)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors=self.decoding_errors)

    def _spellings(self, skip_special_tokens):
        """The bytes of each id, a list."""
        marks = [b"", b""] if skip_special_tokens else [b"<S>", b"</S>"]
        return [b"", *(bytes([byte]) for byte in range(256)), *marks, b"", b"", b""]

    @property
    def settings(self) -> dict[str, Any]:
        settings = {"type": self.kind, "max_characters": self.max_characters, "punctuation": self.punctuation}
        # Left out where text is not cleaned, so that the fingerprints of tokenizers made before stay the same.
        cleaning = {"lowercase": self.lowercase, "strip_accents": self.strip_accents}
        return settings | cleaning if any(cleaning.values()) else settings

    def save(self, folder: StrPath) -> None:
        """Writes tokenizer_config.json; RunDirectoryError if it cannot."""
        settings = {key: value for key, value in self.settings.items() if key != "type"}
        write_config(self, folder, {"tokenizer_class": "CharacterTokenizer", **settings})
