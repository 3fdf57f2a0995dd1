"""The only package that depends on which Keras backend is active; it is asked here, once.

All other layers and models are pure Keras. `tensorflow/` has what only TensorFlow can do (tf.distribute, CPU kernels),
`jax/` training on JAX, `plain.py` the same names for every other backend; `active` is one of them. `randomness.py` and
`fitting.py` have what the trainers share. The rest is pure Keras: `model.py`, the base class
of everything that is `fit`; `layer.py`, that of the layers; `layouts.py`, for models that are divided over devices; `initial_weights.py`; the optimizers in `optimizers.py`
and `adafactor.py`, with `schedules.py` and `variable_rates.py`; the hash of `hashing.py`.
"""

from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING or (_name := keras.backend.backend()) == "tensorflow":  # a type checker reads one of the three
    from bert_tf.backend import tensorflow as active
elif _name == "jax":
    from bert_tf.backend import jax as active
else:
    from bert_tf.backend import plain as active

from bert_tf.backend.adafactor import Adafactor
from bert_tf.backend.hashing import uniform_of
from bert_tf.backend.initial_weights import RandomNormal, RandomUniform, SeededByName, TruncatedNormal, initializer
from bert_tf.backend.layer import Layer
from bert_tf.backend.layouts import LAYOUTS, layout_map
from bert_tf.backend.model import TrainableModel
from bert_tf.backend.optimizers import Adagrad, AdamW, Lamb
from bert_tf.backend.plain import finite_mask
from bert_tf.backend.schedules import WarmupDecay
from bert_tf.backend.variable_rates import ScaledUpdates, scale_updates
from bert_tf.errors import ConfigError

#: Whether models are exported in this process: on TensorFlow.
EXPORTS: bool = active.EXPORTS
Dense = active.Dense
Dropout = active.Dropout
UniformNumbers = active.UniformNumbers
as_graph = active.as_graph
assign = active.assign
compiled_loop = active.compiled_loop
cross_entropy = active.cross_entropy
fused_attention = active.fused_attention
largest = active.largest
on_host = active.on_host
product_with_transposed = active.product_with_transposed
recomputed = active.recomputed


def check_exports(what: str) -> None:
    """Refuses what only TensorFlow does in its process.

    Raises:
        ConfigError: Keras is on another backend; `what` is the subject of the sentence.

    Example:
        check_exports("a compressed export")
    """
    if not EXPORTS:
        raise ConfigError(
            f"{what} needs Keras on TensorFlow; set the environment variable KERAS_BACKEND to tensorflow before Keras is imported"
        )
