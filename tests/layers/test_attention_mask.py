import numpy as np

from bert_tf.layers import AttentionMask

TOKENS = np.zeros((2, 5), "int32")
PADDING = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
SEQUENCES = np.array([[1, 1, 2, 2, 0], [1, 2, 2, 3, 3]])


def test_padding_only_needs_one_row_for_all_queries():
    mask = np.asarray(AttentionMask()(TOKENS, padding_mask=PADDING))
    assert mask.shape == (2, 1, 1, 5) and mask.dtype == np.float32
    np.testing.assert_array_equal(mask[:, 0, 0] == 0, PADDING)
    np.testing.assert_array_equal(mask[:, 0, 0] == np.float32(-1e9), ~PADDING)
    assert AttentionMask(dtype="mixed_bfloat16")(TOKENS, padding_mask=PADDING).dtype == np.float32
    np.testing.assert_array_equal(AttentionMask()(TOKENS), np.zeros((1, 1, 1, 1)))  # nothing to mask


def test_packed_sequences_see_only_themselves():
    mask = np.asarray(AttentionMask()(TOKENS, sequence_ids=SEQUENCES))
    assert mask.shape == (2, 1, 5, 5)
    for row in range(2):
        for query in range(5):
            for key in range(5):
                same = SEQUENCES[row, query] == SEQUENCES[row, key] != 0
                assert (mask[row, 0, query, key] == 0) == same
    both = np.asarray(AttentionMask()(TOKENS, padding_mask=PADDING, sequence_ids=SEQUENCES))
    np.testing.assert_array_equal(both == 0, (mask == 0) & PADDING[:, None, None, :])


def test_window_beside_the_other_masks():
    near = np.abs(np.arange(5)[:, None] - np.arange(5)) <= 1
    layer = AttentionMask(window=1)
    mask = np.asarray(layer(TOKENS))
    np.testing.assert_array_equal(np.broadcast_to(mask[:1, 0] == 0, (1, 5, 5))[0], near)
    mask = np.asarray(layer(TOKENS, padding_mask=PADDING))
    np.testing.assert_array_equal(mask[:, 0] == 0, near & PADDING[:, None, :])
    alone = np.asarray(AttentionMask()(TOKENS, sequence_ids=SEQUENCES))
    mask = np.asarray(layer(TOKENS, sequence_ids=SEQUENCES))
    np.testing.assert_array_equal(mask == 0, (alone == 0) & near)
    assert AttentionMask.from_config(layer.get_config()).window == 1


def test_causal_and_prefix():
    mask = np.asarray(AttentionMask(causal=True)(TOKENS))
    length = TOKENS.shape[1]
    np.testing.assert_array_equal(mask[0, 0] == 0, np.tril(np.ones((length, length), bool)))
    prefix = np.zeros(TOKENS.shape, bool)
    prefix[0, :2] = True
    layer = AttentionMask(causal=True)
    seen = np.asarray(layer(TOKENS, padding_mask=PADDING, sequence_ids=SEQUENCES, prefix_mask=prefix)) == 0
    both = np.asarray(AttentionMask()(TOKENS, padding_mask=PADDING, sequence_ids=SEQUENCES)) == 0
    for b, q, k in np.ndindex(len(TOKENS), length, length):
        assert seen[b, 0, q, k] == (both[b, 0, q, k] and (k <= q or prefix[b, k]))
    assert AttentionMask.from_config(layer.get_config()).causal


def test_queries_in_a_cache_are_rows_of_the_whole():
    for layer in (AttentionMask(causal=True), AttentionMask(causal=True, window=1)):
        whole = np.asarray(layer(TOKENS, padding_mask=PADDING))
        part = layer(TOKENS[:, 1:3], padding_mask=PADDING, cache_position=1, cache_length=TOKENS.shape[1])
        np.testing.assert_array_equal(part, whole[:, :, 1:3])
