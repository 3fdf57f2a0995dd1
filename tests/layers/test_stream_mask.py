import numpy as np

from bert_tf.layers import SegmentsDiffer, StreamMask

TOKENS = np.zeros((1, 4), "int32")


def seen(**arguments):
    return np.asarray(StreamMask()(TOKENS, **arguments))[:, 0].astype(int).tolist()


def test_nothing_is_hidden_without_a_reason():
    assert StreamMask()(TOKENS).shape == (1, 1, 1, 1)
    assert seen(padding_mask=np.array([[True, True, True, False]])) == [[[1, 1, 1, 0]]]


def test_packed_sequences_see_themselves():
    assert seen(sequence_ids=np.array([[1, 1, 2, 0]])) == [[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]]


def test_the_content_stream_sees_itself_and_the_query_stream_does_not():
    order = np.array([[0, 2, 0, 1]])  # tokens 0 and 2 are context, then 3, then 1
    content = [[1, 0, 1, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 1]]
    assert seen(permutation_order=order) == [content]
    query = [[1, 0, 1, 1], [1, 0, 1, 0]]
    assert seen(permutation_order=order, query_positions=np.array([[1, 3]])) == [query]
    real = np.array([[True, True, False, True]])
    found = seen(permutation_order=order, query_positions=np.array([[1, 3]]), padding_mask=real)
    assert found == [[[1, 0, 0, 1], [1, 0, 0, 0]]]


def test_memory_is_seen_by_all():
    memory = np.zeros((1, 7, 2, 3), "float32")
    order = np.array([[0, 2, 0, 1]])
    rows = seen(permutation_order=order, query_positions=np.array([[3]]), memory=memory)
    assert rows == [[[1, 1, 1, 0, 1, 0]]]
    assert seen(padding_mask=np.array([[True, False, True, True]]), memory=memory) == [[[1, 1, 1, 0, 1, 1]]]


def test_segments_are_the_same_or_not():
    layer, memory = SegmentsDiffer(), np.zeros((1, 7, 2, 3), "float32")
    segments = np.array([[0, 0, 1, 2]])
    assert layer(TOKENS).shape == (1, 1, 1, 1)
    differs = np.asarray(layer(TOKENS, segment_ids=segments))[0, 0].astype(int).tolist()
    assert differs == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    # All memory is of segment 0.
    differs = layer(TOKENS, segment_ids=segments, memory=memory, query_positions=np.array([[3, 0]]))
    assert np.asarray(differs)[0, 0].astype(int).tolist() == [[1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1]]
