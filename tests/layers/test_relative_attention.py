"""What the golden files of XLNet do not say of relative attention; see tests/models/test_xlnet_parity.py."""

import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import RelativeAttention, RelativePositions


def sinusoid(distance):
    angles = distance * 10000.0 ** -(np.arange(0, 12, 2) / 12)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def test_clamped_distances():
    layer = RelativePositions(12, clamp_length=3, dropout=0.0, dtype="float32")
    encoding = np.asarray(layer(np.zeros((1, 6), "int32")))
    for distance, row in zip(range(6, -6, -1), encoding):
        np.testing.assert_allclose(row, sinusoid(np.clip(distance, -3, 3)), atol=1e-6)


def test_refuses_heads_that_do_not_divide():
    with pytest.raises(ConfigError, match="hidden_size=12 is not a multiple of num_heads=5"):
        RelativeAttention(5, dropout=0.0, initializer_range=0.1).build((None, None, 12))
