"""Training, and what it leaves: runs, which `bert_tf.load` opens as it opens published checkpoints."""

from bert_tf.checkpoints.formats import FORMATS
from bert_tf.training.run_format import RunFormat

FORMATS.register(RunFormat())
