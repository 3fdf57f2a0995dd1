"""Variables that are set from arrays in blocks of rows."""

import keras
import numpy as np
import pytest

from bert_tf.backend import assign


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_blocks_of_rows_fill_a_variable(dtype):
    variable = keras.Variable(np.zeros((7, 3)), dtype=dtype)
    rows = np.arange(21, dtype="float32").reshape(7, 3)
    assign(variable, iter([rows[:2], rows[2:3], rows[3:]]))
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable.value).astype("float32"), rows)
    assign(variable, [2 * rows])
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable.value).astype("float32"), 2 * rows)


def test_a_variable_that_was_set_in_blocks_is_not_copied_at_each_read():
    variable = keras.Variable(np.zeros((64, 64)))
    assign(variable, np.ones((4, 16, 64), "float32"))
    first, second = variable.value.read_value(), variable.value.read_value()
    assert np.shares_memory(first._numpy(), second._numpy())
