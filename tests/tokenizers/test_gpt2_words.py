"""GPT-2's pattern without its lookahead: every code point, and words against the `tokenizers` package."""

import numpy as np
import tensorflow as tf
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Split

from bert_tf.tokenizers.bpe.gpt2_words import ByteWordSplitter, byte_alphabet, character_classes


def test_kind_of_every_code_point():
    # Through another door of the oracle: one class of characters at a time.
    expected = np.zeros(0x110000, np.uint8)
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for kind, pattern in ((1, r"\p{L}"), (2, r"\p{N}"), (3, r"\s")):
        split = Split(Regex(pattern + "+"), "removed").pre_tokenize_str
        for start in range(0, len(codes), 2048):
            block = codes[start : start + 2048]
            left = {c for piece, _ in split("".join(map(chr, block))) for c in piece}
            expected[[c for c in block if chr(c) not in left]] = kind
    assert np.flatnonzero(character_classes() != expected).tolist() == []


def expected_words(text):
    byte_of = {character: byte for byte, character in enumerate(byte_alphabet())}
    found = ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [bytes(byte_of[c] for c in word) for word, _ in found]


def test_words_of_all_neighborhoods():
    # Every text of up to 5 characters of these: apostrophes, letters of contractions, spaces, others.
    alphabet, some = "'slr \n1!é", [""]
    for _ in range(4):
        some += {text + c for text in some for c in alphabet} - set(some)
    words, splits = ByteWordSplitter().split(tf.constant([text.encode() for text in some]))
    words, splits = words.numpy(), splits.numpy()
    different = [t for i, t in enumerate(some) if words[splits[i] : splits[i + 1]].tolist() != expected_words(t)]
    assert len(some) == 1 + 9 + 9**2 + 9**3 + 9**4
    assert different == []
