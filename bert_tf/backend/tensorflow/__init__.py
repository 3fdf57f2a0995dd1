"""What TensorFlow computes otherwise than `bert_tf.backend.plain`: faster on CPUs, and exact under tf.distribute.

`kernels.py`: layers and functions that are faster on CPUs; `loops.py`: element-wise functions compiled to one loop,
the switch of both, and functions as graphs. `randomness.py`: dropout from the seed of a step. `trainer.py` and `steps.py`: `fit` and its steps.
`adam.py`: an update as one operation. `strategies.py`, `tpu.py`: devices, and what a TPU asks for.
"""

from bert_tf.backend.plain import fused_attention, on_host
from bert_tf.backend.randomness import recomputed
from bert_tf.backend.tensorflow import strategies
from bert_tf.backend.tensorflow.adam import apply_adam, dense
from bert_tf.backend.tensorflow.kernels import Dense, assign, cross_entropy, largest, product_with_transposed
from bert_tf.backend.tensorflow.loops import as_graph, compiled_loop
from bert_tf.backend.tensorflow.randomness import Dropout, UniformNumbers
from bert_tf.backend.tensorflow.trainer import Trainer

EXPORTS = True
