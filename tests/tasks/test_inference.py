"""What was computed of sequences is looked up in the arrays of whole batches."""

import numpy as np
import pytest

from bert_tf.tasks.inference import Outputs


def test_each_sequence_has_the_row_of_its_batch():
    outputs = Outputs(5)
    outputs.add(np.array([4, 0]), {"scores": np.array([[4.0], [0.0], [9.0]])})  # the last row is a filler
    outputs.add([2, 1], {"scores": np.array([[2.0, 2.5], [1.0, 1.5]])})  # of another width
    assert [outputs[i]["scores"].tolist() for i in (0, 1, 2, 4)] == [[0.0], [1.0, 1.5], [2.0, 2.5], [4.0]]
    assert len(outputs) == 5
    with pytest.raises(KeyError, match="sequence 3 is in no batch"):
        list(outputs)
