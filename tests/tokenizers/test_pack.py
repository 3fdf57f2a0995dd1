"""Framing, truncating and padding of rows against the loop that BERT's authors published.

Rows of the other layouts are compared with those of `tokenizers` in test_subword_files.py and test_foreign_tokenizers.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.layout import build_layout
from bert_tf.tokenizers.ops.model_rows import pack

IDS = {"layout": build_layout("bert", 101, 102), "pad_id": 7}


def truncate_seq_pair(a, b, room):
    """google-research/bert run_classifier.py, _truncate_seq_pair."""
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    return a, b


def ragged(rows):
    return tf.ragged.constant(rows, tf.int32, ragged_rank=1)


def test_pairs_as_the_published_loop():
    random = np.random.default_rng(0)
    lengths = [(i, j) for i in range(9) for j in range(9)] + [(30, 1), (1, 30), (30, 29), (30, 31)]
    first = [random.integers(200, 300, i).tolist() for i, _ in lengths]
    second = [random.integers(300, 400, j).tolist() for _, j in lengths]
    for size in (5, 6, 11, 12, 20):
        packed = pack(ragged(first), ragged(second), sequence_length=size, **IDS)
        for k, (a, b) in enumerate(zip(first, second)):
            a, b = truncate_seq_pair(a, b, size - 3)
            row = [101, *a, 102, *b, 102]
            filler = size - len(row)
            assert packed["token_ids"][k].numpy().tolist() == row + [7] * filler
            segments = [0] * (len(a) + 2) + [1] * (len(b) + 1) + [0] * filler
            assert packed["segment_ids"][k].numpy().tolist() == segments
            assert packed["padding_mask"][k].numpy().tolist() == [True] * len(row) + [False] * filler


def test_single_texts_and_dynamic_padding():
    """Dynamic rows of pairs are those of test_subword_files.py."""
    rows = ragged([[1, 2, 3, 4, 5, 6], [], [8]])
    packed = pack(rows, sequence_length=6, **IDS)
    expected = [[101, 1, 2, 3, 4, 102], [101, 102, 7, 7, 7, 7], [101, 8, 102, 7, 7, 7]]
    assert packed["token_ids"].numpy().tolist() == expected
    types = {name: value.dtype for name, value in packed.items()}
    assert types == {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
    short = pack(rows[1:], sequence_length=6, dynamic=True, **IDS)
    assert short["token_ids"].numpy().tolist() == [[101, 102, 7], [101, 8, 102]]
    assert short["padding_mask"].numpy().tolist() == [[True, True, False], [True, True, True]]


def test_empty_texts_without_special_tokens_have_a_column_of_padding():
    settings = {"layout": build_layout("none", None, None), "pad_id": 7, "sequence_length": 6, "dynamic": True}
    packed = pack(ragged([[], []]), **settings)
    assert packed["token_ids"].numpy().tolist() == [[7], [7]] and not packed["padding_mask"].numpy().any()
    assert pack(ragged([[], [8, 9]]), **settings)["token_ids"].numpy().tolist() == [[7, 7], [8, 9]]
    assert pack(ragged([[1]])[:0], **settings)["token_ids"].shape == (0, 0)


def test_static_shapes_in_a_function():
    shapes = []

    @tf.function(input_signature=[tf.RaggedTensorSpec([4, None], tf.int32)])
    def run(rows):
        packed = pack(rows, rows, sequence_length=9, **IDS)
        shapes.extend(value.shape.as_list() for value in packed.values())
        return packed

    run(ragged([[1], [2], [], [3]]))
    assert shapes == [[4, 9]] * 3


@pytest.mark.parametrize("given", ["a text", ["a text"], tf.constant([5, 6])])
def test_what_tokenize_does_not_return_is_refused(given):
    with pytest.raises(DataError, match="pack takes the ids of a list of texts, .* got .*; give tokenize a list"):
        pack(given, sequence_length=8, **IDS)
    with pytest.raises(DataError, match="pack takes"):
        pack(ragged([[1]]), given, sequence_length=8, **IDS)


def test_no_room():
    with pytest.raises(ConfigError, match="sequence_length is 2; the 2 special tokens .* at least 3"):
        pack(ragged([[1]]), sequence_length=2, **IDS)
    with pytest.raises(ConfigError, match="at least 5"):
        pack(ragged([[1]]), ragged([[1]]), sequence_length=4, **IDS)


def test_layouts_refused():
    with pytest.raises(ConfigError, match="unknown layout 'robert'; did you mean 'roberta'"):
        build_layout("robert", 1, 2)
    with pytest.raises(ConfigError, match="layout 'xlnet' needs a token for the role 'cls'"):
        build_layout("xlnet", None, 2)
    with pytest.raises(ConfigError, match="layout 't5' needs a token for the role 'sep'"):
        build_layout("t5", 1, None)
