"""Layers and functions in plain Keras, for every backend but TensorFlow.

On TensorFlow they are what `compile(cpu_kernels=False)` leaves: `bert_tf.backend.tensorflow` has the names of this file
again, faster or exact under tf.distribute, and calls these where it has nothing better. The numbers are the same but
for rounding.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.backend.layer import Layer
from bert_tf.errors import ConfigError

EXPORTS = False
Dropout = keras.layers.Dropout


def assign(variable: Any, blocks: Iterable[Any]) -> None:
    """Sets a variable from an array in blocks of rows."""
    parts = list(blocks)
    variable.assign(parts[0] if len(parts) == 1 else np.concatenate(parts))


def fused_attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """softmax(query key^T + mask) value in one operation, where the backend has one; without dropout.

    Args: float [B, Q, n, d], scaled; [B, S, h, d] twice, n a multiple of h; None, or float, broadcast to [B, n, Q, S].

    Returns: float [B, Q, n, d]; None where there is no such operation, as here.
    """
    return None


def finite_mask(mask: Any) -> Any:
    """A mask in float32, without infinities.

    Keras has cast it, as any float argument, to the compute dtype. In float16 -1e9 became an infinity, and a query that
    sees no key would get NaN.
    """
    return ops.maximum(ops.cast(mask, "float32"), -1e9)


@keras.saving.register_keras_serializable("bert_tf")
class Dense(keras.layers.Dense):
    """Keras's own, which can be quantized although it is a subclass.

    Example:
        Dense(4)(np.ones((2, 3, 8), "float32"))  # [2, 3, 4]
    """

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None) -> Any:
        return super().quantize(mode, type_check=False, config=config)  # Keras refuses all subclasses


class UniformNumbers(Layer):
    """Random numbers in (0, 1) for each step of training, as `Dropout` draws its masks.

    Example:
        UniformNumbers().draw(3)  # float32 [3]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator()
        self.built = True

    def draw(self, count: int) -> Any:
        """`count` numbers, an int: float32 [count]."""
        return keras.random.uniform((count,), dtype="float32", seed=self.seed_generator)


def product_with_transposed(x: Any, matrix: Any) -> Any:
    """`x` times the transpose of `matrix`: float [..., H], float [V, H] -> float [..., V]."""
    return ops.matmul(x, ops.transpose(matrix))


def largest(x: Any) -> Any:
    """int32 [...]: the index of the largest of float [..., K], of equals the first."""
    return ops.argmax(x, axis=-1)


def cross_entropy(logits: Any, labels: Any, guesses: Any) -> Any:
    """-log softmax(logits)[labels]; float32 [...] from float32 [..., K], int32 [...] and `largest` of the logits."""
    return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def compiled_loop(function: Callable[..., Any], plain: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """An element-wise function, compiled where the backend does so: `plain`, or `function` itself where that is None."""
    return plain or function


def recomputed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, computed again in the backward pass where a train step asks for it: on TensorFlow."""
    return function


def as_graph(function: Callable[..., Any], shapes: Sequence[tuple[Any, Any]] | None = None) -> Callable[..., Any]:
    """`function`, on TensorFlow computed as a graph."""
    return function


def on_host(function: Callable[..., Any], count: Any, *arguments: Any) -> Any:
    """bool [count]: what `function` of TensorFlow gives for tensors, also inside a compiled function of another backend."""
    return function(*arguments)


def dense(gradient: Any) -> Any:
    """A gradient as a tensor, although it may be one of looked-up rows."""
    return gradient


def apply_adam(optimizer: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    """One step of Adam, without weight decay, of a `bert_tf.backend.AdamW`, computed in the dtype of its moments."""
    index = optimizer._get_variable_index(variable)
    m, v = optimizer._momentums[index], optimizer._velocities[index]
    beta_1, beta_2 = optimizer.beta_1, optimizer.beta_2
    gradient = ops.cast(gradient, m.dtype)
    optimizer.assign(m, beta_1 * m + (1 - beta_1) * gradient)
    optimizer.assign(v, beta_2 * v + (1 - beta_2) * ops.square(gradient))
    size = ops.cast(learning_rate, m.dtype)
    if optimizer.bias_correction:
        step = ops.cast(optimizer.iterations + 1, m.dtype)
        size = size * ops.sqrt(1 - ops.power(beta_2, step)) / (1 - ops.power(beta_1, step))
    optimizer.assign_sub(variable, ops.cast(size * m / (ops.sqrt(v) + optimizer.epsilon), variable.dtype))


#: Devices to train on: there are none.
strategies: Any = None
NEEDS_TRAINING_BACKEND = (
    "training needs Keras on TensorFlow or JAX; set the environment variable KERAS_BACKEND to one of them before Keras is "
    "imported"
)


class Trainer(keras.Model):
    """The base class of `TrainableModel`: models run on every backend, training needs TensorFlow or JAX."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        raise ConfigError(NEEDS_TRAINING_BACKEND)
