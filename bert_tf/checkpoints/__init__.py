"""Published checkpoints: Hugging Face's, the originals' TensorFlow 1 files, the Model Garden's."""

from bert_tf.checkpoints.saving import write_checkpoint
from bert_tf.checkpoints.source import Source, is_checkpoint, open_checkpoint
