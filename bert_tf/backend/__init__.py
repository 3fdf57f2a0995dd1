"""The only package that depends on which Keras backend is active.

All other layers and models are pure Keras. What only TensorFlow can do (tf.distribute, CPU kernels, stateless
randomness inside a train step) is here, behind a check of the active backend.
"""

from bert_tf.backend.adafactor import Adafactor
from bert_tf.backend.cpu_kernels import (
    Dense,
    LayerNormalization,
    RMSNormalization,
    attention_weights,
    cross_entropy,
    largest,
    product_with_transposed,
)
from bert_tf.backend.graph import as_graph
from bert_tf.backend.initial_weights import RandomNormal, RandomUniform, SeededByName, TruncatedNormal, initializer
from bert_tf.backend.lamb import Lamb
from bert_tf.backend.layer import Layer
from bert_tf.backend.loops import fused
from bert_tf.backend.model import NonFiniteError, TrainableModel
from bert_tf.backend.optimizers import Adagrad, AdamW
from bert_tf.backend.randomness import Dropout, UniformNumbers, recomputed
from bert_tf.backend.schedules import WarmupDecay
from bert_tf.backend.variable_rates import ScaledUpdates, scale_updates
