r"""GPT-2's splitting of text into words, as graph ops on all characters of a batch.

The pattern of openai/gpt-2, src/encoder.py, is

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

TensorFlow's regular expressions know no (?!\S); but where a word begins is decided by the classes of the few characters
around it, so it is computed for all characters side by side. Which characters are letters, numbers and white space is
read off the `tokenizers` package.
"""

import functools

import numpy as np
import tensorflow as tf
from tokenizers.pre_tokenizers import ByteLevel

from bert_tf.tokenizers.ops.splitting import cut_at
from bert_tf.tokenizers.ops.strings import join_bytes
from bert_tf.types import Tensor

_OTHER, _LETTER, _NUMBER, _SPACE = range(4)
_BLOCK = 256  # characters
_APOSTROPHE, _SPACE_CODE = ord("'"), ord(" ")
_SHORT = "stmd"  # 's 't 'm 'd
_LONG = ("re", "ve", "ll")


@functools.lru_cache(maxsize=1)
def byte_alphabet() -> str:
    """256 characters, one for each byte: how vocabularies spell bytes (bytes_to_unicode of GPT-2)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    unprintable = [b for b in range(256) if b not in printable]
    spelled = dict(zip(printable, map(chr, printable))) | {b: chr(256 + k) for k, b in enumerate(unprintable)}
    return "".join(spelled[b] for b in range(256))


@functools.lru_cache(maxsize=1)
def character_classes() -> np.ndarray:
    """uint8 [0x110000]: 1 for letters, 2 for numbers, 3 for white space, else 0."""
    split = ByteLevel(add_prefix_space=False).pre_tokenize_str
    classes = np.zeros(0x110000, np.uint8)

    def joins(neighbor, character):
        return len(split(neighbor + character)) == 1

    # In the order of their codes, characters make words of one class_ each, to be asked about
    # once. (Planes 4 to 13 are unassigned, 15 and 16 of private use: no letters.)
    codes = [c for c in (*range(0x21, 0x40000), *range(0xE0000, 0xE1000)) if not 0xD800 <= c < 0xE000]
    for start in range(0, len(codes), 1024):
        block = codes[start : start + 1024]
        for _, (first, last) in split("".join(map(chr, block))):
            character = chr(block[first])
            class_ = _LETTER if joins("a", character) else _NUMBER if joins("1", character) else _OTHER
            if class_ == _OTHER and not joins("!", character):
                class_ = _SPACE
            classes[block[first] : block[last - 1] + 1] = class_
    for code in range(0x21):
        classes[code] = _OTHER if joins("!", chr(code)) else _SPACE
    return classes


@functools.lru_cache(maxsize=1)
def _class_blocks():
    """The classes in two steps, as most blocks are equal: number of the block [4352], blocks [K, 256]."""
    blocks, number = np.unique(character_classes().reshape(-1, _BLOCK), axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int32), blocks


class ByteWordSplitter:
    """Splits texts into the words that byte-level BPE encodes."""

    def __init__(self) -> None:
        number, blocks = _class_blocks()
        with tf.init_scope():
            self._number = tf.constant(number)
            self._blocks = tf.constant(blocks.reshape(-1))
            self._ascii = tf.constant(character_classes()[:128])

    def split(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """(words tf.string [W], splits int32 [M + 1]) of texts tf.string [M], valid UTF-8; the words joined are the
        texts."""
        lengths = tf.strings.length(texts)
        byte_splits = tf.concat([[0], tf.cumsum(lengths)], 0)
        joined_texts = tf.strings.reduce_join(texts)
        data = join_bytes(texts)
        codes, offsets, classes = tf.cond(
            tf.reduce_all(data < 128),
            lambda: (tf.cast(data, tf.int32), tf.range(tf.size(data)), tf.gather(self._ascii, tf.cast(data, tf.int32))),
            lambda: self._decode(joined_texts),
        )
        splits = tf.searchsorted(offsets, byte_splits)  # characters of each text
        begins = self._begins(codes, classes, splits)
        byte_begins = tf.boolean_mask(offsets, begins)
        byte_ends = tf.concat([byte_begins[1:], byte_splits[-1:]], 0)[: tf.size(byte_begins)]
        words = cut_at(joined_texts[None], byte_begins, byte_ends, tf.stack([0, tf.size(byte_begins)]))
        return words, tf.gather(tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int32))], 0), splits)

    def _decode(self, text):
        codes, offsets = tf.strings.unicode_decode_with_offsets(text, "UTF-8")
        classes = tf.gather(self._blocks, tf.gather(self._number, codes // _BLOCK) * _BLOCK + codes % _BLOCK)
        return codes, tf.cast(offsets, tf.int32), classes

    @staticmethod
    def _begins(codes, classes, splits):
        """bool [C]: whether a word begins at the character."""
        size = tf.size(codes)
        is_first = tf.scatter_nd(splits[:, None], tf.ones_like(splits), [size + 1])[:-1] > 0
        is_space = classes == _SPACE
        after_space = _shift(is_space, 1, False) & ~is_first
        before_word = _shift(~is_space & ~is_first, -1, False)
        begins = is_first | tf.where(
            is_space,
            # The last of several spaces belongs to the word that follows: \\s+(?!\\S).
            ~after_space | before_word,
            tf.where(
                after_space,
                _shift(codes, 1, 0) != _SPACE_CODE,  # " ?" takes U+0020 and no other space
                classes != _shift(classes, 1, 0),
            ),
        )

        def contractions():
            # Inside of its text, else 0, which continues no contraction.
            next_first = _shift(is_first, -1, True)
            second = tf.where(next_first, 0, _shift(codes, -1, 0))
            third = tf.where(next_first | _shift(next_first, -1, True), 0, _shift(codes, -2, 0))
            apostrophe = begins & (codes == _APOSTROPHE)
            short = apostrophe & tf.reduce_any([second == ord(c) for c in _SHORT], axis=0)
            long = apostrophe & tf.reduce_any(
                [(second == ord(pair[0])) & (third == ord(pair[1])) for pair in _LONG], axis=0
            )
            inside = _shift(short | long, 1, False) | _shift(long, 2, False)
            return begins & ~inside | _shift(short, 2, False) | _shift(long, 3, False)

        return tf.cond(tf.reduce_any(begins & (codes == _APOSTROPHE)), contractions, lambda: begins)


def _shift(values, by, filler):
    """`values` moved `by` positions to the right, or to the left where negative."""
    filler = tf.fill([tf.minimum(abs(by), tf.size(values))], tf.cast(filler, values.dtype))
    return tf.concat([filler, values[:-by]] if by > 0 else [values[-by:], filler], 0)
