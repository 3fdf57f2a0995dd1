"""Rotary position embeddings (Su et al. 2021, arXiv:2104.09864)."""

import keras
from keras import ops

from bert_tf.backend import Layer
from bert_tf.errors import ConfigError


@keras.saving.register_keras_serializable("bert_tf")
class RotaryPositions(Layer):
    """The cosines and sines by which queries and keys are turned at each position.

    Frequency i of a head of size d is theta^(-2i/d). One layer serves all attentions with that
    theta.

    Args:
        theta: the base of the wavelengths.
        head_size: d, even.

    Call arguments:
        token_ids: [B, S], for its shape only.
        position_ids: int [B, S]; None means 0..S-1 in every sequence.

    Returns:
        float32 [2, B or 1, S, 1, d / 2]: cosines and sines.

    Raises:
        ConfigError: an odd head size.

    Example:
        RotaryPositions(theta=10_000.0, head_size=4)(np.zeros((2, 5), "int32"))  # [2, 1, 5, 1, 2]
    """

    def __init__(self, theta, head_size, **kwargs):
        super().__init__(**kwargs)
        check_even(head_size)
        self.theta, self.head_size = theta, head_size

    def call(self, token_ids, position_ids=None):
        if position_ids is None:
            position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None, :]
        # float32 whatever the compute dtype: bfloat16 cannot count to 512.
        exponents = ops.arange(0, self.head_size, 2, dtype="float32") / self.head_size
        angles = ops.cast(position_ids, "float32")[:, :, None] / ops.power(float(self.theta), exponents)
        return ops.stack([ops.cos(angles), ops.sin(angles)])[:, :, :, None, :]

    def compute_output_spec(self, token_ids, position_ids=None):
        batch = 1 if position_ids is None else token_ids.shape[0]
        return keras.KerasTensor((2, batch, token_ids.shape[1], 1, self.head_size // 2), dtype="float32")


def rotate(x, rotation, pairs="halves"):
    """Turns pairs of numbers by their angles.

    Args:
        x: [B, S, n, d].
        rotation: the result of `RotaryPositions`.
        pairs: "halves", x[i] and x[i + d/2], as in GPT-NeoX and Llama; "interleaved", x[2 i] and x[2 i + 1], as in the
            paper and in GPT-J.

    Returns:
        [B, S, n, d].
    """
    cos, sin = rotation[0], rotation[1]
    if pairs == "halves":
        first, second = ops.split(x, 2, axis=-1)
        return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    first, second = x[..., ::2], x[..., 1::2]
    turned = ops.stack([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return ops.reshape(turned, ops.shape(x))


def check_even(head_size):
    """Refuses a head size that does not divide into pairs.

    Raises:
        ConfigError: `head_size` is odd.
    """
    if head_size % 2:
        raise ConfigError(f"rotary positions need an even head size, got {head_size} = hidden_size / num_heads")
