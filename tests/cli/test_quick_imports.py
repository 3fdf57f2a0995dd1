"""What TensorFlow's import leaves out in a command."""

import subprocess
import sys

SCRIPT = """
import sys
from bert_tf.cli.quick_imports import hide_optional_libraries
hide_optional_libraries()
hide_optional_libraries()
import keras, tensorflow
assert len([finder for finder in sys.meta_path if "quick_imports" in type(finder).__module__]) == 1
assert not {"jax", "sklearn"} & set(sys.modules), "imported after all: somebody else looks for them now"
import sklearn.metrics  # what asks for it in earnest gets it
print(sklearn.metrics.f1_score([0, 1], [0, 1]))
"""


def test_tensorflow_is_imported_without_libraries_that_it_only_looks_for():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "1.0\n", done.stderr
