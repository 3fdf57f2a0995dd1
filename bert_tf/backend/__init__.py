"""The one seam where Keras backends differ.

Everything above this room is pure Keras. What only TensorFlow can do (tf.distribute, fused
optimizer kernels, counter-based randomness inside a train step) lives here, behind a check of the
active backend.
"""

from bert_tf.backend.attention_weights import attention_weights
from bert_tf.backend.dense import Dense
from bert_tf.backend.fused import fused
from bert_tf.backend.lamb import Lamb
from bert_tf.backend.layer_norm import LayerNormalization
from bert_tf.backend.lookup import lookup
from bert_tf.backend.model import NonFiniteError, TrainableModel
from bert_tf.backend.optimizers import AdamW
from bert_tf.backend.randomness import Dropout, recomputed
from bert_tf.backend.schedules import WarmupDecay
from bert_tf.backend.vocabulary import largest, product_with_transposed
