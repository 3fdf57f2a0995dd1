"""What JAX computes otherwise than `bert_tf.backend.plain`: dropout from the seed of a step, and `fit`.

`randomness.py`: the masks of TensorFlow, to the bit. `attention.py`: attention as one operation. `trainer.py`: `fit` and
its steps. `strategies.py`: devices.
"""

from bert_tf.backend.jax import strategies
from bert_tf.backend.jax.attention import fused_attention
from bert_tf.backend.jax.callbacks import on_host
from bert_tf.backend.jax.randomness import Dropout, UniformNumbers
from bert_tf.backend.jax.trainer import Trainer
from bert_tf.backend.plain import (
    EXPORTS,
    Dense,
    apply_adam,
    as_graph,
    assign,
    compiled_loop,
    cross_entropy,
    dense,
    largest,
    product_with_transposed,
)
from bert_tf.backend.randomness import recomputed
