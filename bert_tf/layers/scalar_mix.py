"""A learned mix of the outputs of a model's layers."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Layer
from bert_tf.types import Options, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class ScalarMix(Layer):
    """gamma * sum_j softmax(w)_j h_j, of the outputs h of several layers; w starts from 0 and gamma from 1.

    Peters et al. 2018 (arXiv:1802.05365), equation 1. bilm-tf adds 1 / L to w, which the softmax does not see.

    Args:
        num_layers: L, how many outputs are mixed.
        normalizes: whether each output is normalized first, by the mean and the variance of all numbers of its real
            tokens in the batch. A text's vectors then depend on the other texts of its batch.

    Call arguments:
        hidden_states: list of L float [B, S, H].
        padding_mask: bool [B, S], for `normalizes`; None for no padding.

    Returns:
        [B, S, H] in the compute dtype.

    Example:
        ScalarMix(3)([np.ones((1, 2, 4), "float32")] * 3)  # [1, 2, 4], of ones

    Source: allenai/bilm-tf `elmo.py`, `weight_layers`.
    """

    def __init__(self, num_layers: int, normalizes: bool = False, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.num_layers, self.normalizes = num_layers, normalizes

    def build(self, shapes: Any = None) -> None:
        self.weight = self.add_weight(shape=(self.num_layers,), initializer="zeros", name="weight")
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")

    def call(self, hidden_states: list[Tensor], padding_mask: Tensor = None) -> Tensor:
        states = [ops.cast(x, self.compute_dtype) for x in hidden_states]
        if self.normalizes:
            states = [_normalized(x, padding_mask) for x in states]
        shares = ops.cast(ops.softmax(ops.cast(self.weight, "float32")), self.compute_dtype)
        mixed = sum(shares[j] * x for j, x in enumerate(states))
        return ops.cast(self.gamma, self.compute_dtype) * mixed


def _normalized(x, padding_mask):
    """[B, S, H] with mean 0 and variance 1 over all numbers of real tokens."""
    z = ops.cast(x, "float32")
    mask = ops.ones_like(z[..., :1]) if padding_mask is None else ops.cast(padding_mask, "float32")[..., None]
    count = ops.maximum(ops.sum(mask) * x.shape[-1], 1.0)
    mean = ops.sum(z * mask) / count
    variance = ops.sum(ops.square((z - mean) * mask)) / count
    return ops.cast((z - mean) / ops.sqrt(variance + 1e-12), x.dtype)
