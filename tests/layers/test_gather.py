import numpy as np

from bert_tf.layers.gather import gather_positions


def test_gather_positions():
    x = np.random.default_rng(1).normal(size=(3, 5, 2)).astype("float32")
    positions = np.array([[0, 4], [2, 2], [3, 1]], "int32")
    np.testing.assert_array_equal(gather_positions(x, positions), x[np.arange(3)[:, None], positions])
