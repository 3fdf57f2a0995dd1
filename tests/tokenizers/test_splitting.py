"""Texts cut by a pattern, against the functions of tensorflow-text that check what its operators give."""

import random

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.tokenizers.ops.splitting import cut_at, split_by_pattern


def test_parts_are_those_of_tensorflow_text():
    draw = random.Random(3)
    texts = ["", " ", "  a", "é!!", "<s> <s>"] + [
        "".join(draw.choices(" aé!<s>한\n", k=draw.randint(0, 14))) for _ in range(300)
    ]
    for delimiter, kept in (("[ !]", "[!]"), (" |[^ a-zé]+", "[^ a-zé]+"), (" *<s>|é", " *<s>|é"), ("[ \n]", "")):
        words, begins, ends = tf_text.regex_split_with_offsets(tf.constant(texts), delimiter, kept)
        found = split_by_pattern(tf.constant(texts), delimiter, kept)
        for part, expected in zip(found, (begins.values, ends.values, words.row_splits), strict=True):
            np.testing.assert_array_equal(part, expected)
        assert (found[0] < found[1]).numpy().all()  # no part is empty
        np.testing.assert_array_equal(cut_at(tf.constant(texts), *found), words.values)


def test_a_nul_is_a_character():
    text = tf.constant(["a\0b c", "\0"])
    begins, ends, splits = split_by_pattern(text, " ")
    assert cut_at(text, begins, ends, splits).numpy().tolist() == [b"a\0b", b"c", b"\0"]
    assert splits.numpy().tolist() == [0, 2, 3]
