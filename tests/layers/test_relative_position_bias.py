import math

import numpy as np
import pytest

from bert_tf.layers import RelativePositionBias


def bucket(distance, bidirectional, count, longest):
    """T5's bucket of key - query = `distance`, as `_relative_position_bucket` of modeling_t5.py has it."""
    first = 0
    if bidirectional:
        count //= 2
        first = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = -min(distance, 0)
    exact = count // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(longest / exact) * (count - exact))
    return first + min(far, count - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("count", "longest"), [(32, 128), (8, 20)])
def test_buckets(bidirectional, count, longest):
    layer = RelativePositionBias(3, count, longest, bidirectional, initializer_range=1.0)
    tokens = np.zeros((2, 150), "int32")
    bias = np.asarray(layer(tokens))
    assert bias.shape == (1, 3, 150, 150)
    table = np.asarray(layer.table)
    expected = [[bucket(k - q, bidirectional, count, longest) for k in range(150)] for q in range(150)]
    np.testing.assert_array_equal(bias[0], np.moveaxis(table[np.array(expected)], 2, 0))
    part = layer(tokens[:, :4], cache_position=7, cache_length=150)
    np.testing.assert_array_equal(part, bias[:, :, 7:11])
    assert RelativePositionBias.from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("bidirectional", [True, False])
def test_without_distances_that_grow_logarithmically_the_last_single_one_holds_the_rest(bidirectional):
    count, single = 8, 2 if bidirectional else 4
    layer = RelativePositionBias(1, count, single, bidirectional, initializer_range=1.0)
    bias, table = np.asarray(layer(np.zeros((1, 9), "int32")))[0, 0], np.asarray(layer.table)[:, 0]
    np.testing.assert_array_equal(bias[8, ::-1], table[np.minimum(np.arange(9), single)])


def test_published_buckets():
    # T5's encoder: 32 buckets up to 128. Each power of two is a bucket's first distance but one.
    found = [bucket(-d, True, 32, 128) for d in (0, 1, 7, 8, 11, 12, 15, 16, 31, 32, 64, 127, 128, 9000)]
    assert found == [0, 1, 7, 8, 8, 9, 9, 10, 11, 12, 14, 15, 15, 15]
    layer = RelativePositionBias(1, 32, 128, True, 1.0)
    some = [11, 12, 16, 31, 32, 127, 128]
    np.testing.assert_array_equal(np.asarray(layer._buckets())[some], [8, 9, 10, 11, 12, 15, 15])
