"""The character table as an operator: every code point, and every way for UTF-8 to break off."""

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from tokenizers.normalizers import BertNormalizer

from bert_tf.tokenizers.character_tables import cleaned_characters
from bert_tf.tokenizers.ops.character_map import build_character_map

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def run(table, texts):
    model = tf.constant(build_character_map(table))
    return tf_text.FastBertNormalizer(model_buffer=model).normalize(tf.constant(texts)).numpy().tolist()


@pytest.mark.parametrize("lowercase, strip_accents, chinese", [(True, True, True), (True, False, False)])
def test_every_code_point_is_cleaned_as_the_oracle_does(lowercase, strip_accents, chinese):
    clean = BertNormalizer(True, chinese, strip_accents, lowercase).normalize_str
    expected = [clean(c) for c in CHARACTERS[:128]]
    expected += clean("q".join(CHARACTERS[128:])).split("q")
    found = run(cleaned_characters(lowercase, strip_accents, chinese), CHARACTERS)
    wrong = [(c, f, e) for c, f, e in zip(CHARACTERS, found, expected, strict=True) if f.decode() != e]
    assert wrong == []


def test_every_prefix_of_a_character_and_every_lone_byte_is_dropped():
    texts, prefixes = [], {c.encode()[:n] for c in CHARACTERS[128:] for n in range(1, len(c.encode()))}
    for broken in sorted(prefixes | {bytes([b]) for b in range(0x80, 0x100)}):
        texts += [b"a" + broken, b"a" + broken + b"b"]
    table = {"A": "a"}
    assert run(table, texts) == [t[:1] + (b"b" if t[-1:] == b"b" else b"") for t in texts]


def test_values_of_any_length_up_to_the_limit():
    table = {chr(0x4E00 + i): "xyz"[i % 3] * i + str(i) for i in range(61)} | {"\0": "nul", "\x7f": ""}
    texts = [*table, "a\0b", "丁a丂", "q", "鿿"]
    assert [t.decode() for t in run(table, texts)] == [*table.values(), "anulb", "y1azz2", "q", "鿿"]
    with pytest.raises(ValueError, match="U\\+0041 becomes 64 bytes"):
        build_character_map({"A": "x" * 64})
