"""GLUE and SuperGLUE as they are distributed and as they are submitted."""

from bert_tf.runs.benchmarks.glue import GLUE
from bert_tf.runs.benchmarks.superglue import SUPERGLUE

#: The benchmarks of 'bert-tf benchmark'; the settings of each are the shipped configuration benchmarks/NAME.
BENCHMARKS = {"glue": GLUE, "superglue": SUPERGLUE}
