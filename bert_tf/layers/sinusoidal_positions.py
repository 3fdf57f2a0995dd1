"""The positions of the Transformer of 2017: sines and cosines, without weights."""

import keras
import numpy as np
from keras import ops

from bert_tf.backend import Layer
from bert_tf.errors import ConfigError

LAYOUTS = ("interleaved", "concatenated")


@keras.saving.register_keras_serializable("bert_tf")
class SinusoidalPositions(Layer):
    """A vector for each position, made of sines and cosines of falling frequency; there is no longest text.

    Vaswani et al. 2017, section 3.5. Two layouts are published; a model must keep the one it was trained with:

    - "interleaved", the paper: sin(p / 10000^(2i/E)) at 2i, the cosine of the same angle at 2i + 1.
    - "concatenated", `get_timing_signal_1d` in tensor2tensor: all sines, then all cosines, of the angles
      p / 10000^(i / (E/2 - 1)), so that the last frequency is exactly 1/10000.

    Args:
        size: E, even.
        layout: "interleaved" or "concatenated".

    Call arguments:
        token_ids: [B, S], for its shape only.
        position_ids: int [B, S] or [1, S], counted from 0; None means 0..S-1 in every sequence.

    Returns:
        float32 [B or 1, S, E].

    Raises:
        ConfigError: an odd size or an unknown layout.

    Example:
        SinusoidalPositions(8, "interleaved")(np.zeros((2, 5), "int32"))  # [1, 5, 8]
    """

    def __init__(self, size, layout, **kwargs):
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise ConfigError(f"the layout of sinusoidal positions is {layout!r}; give one of {', '.join(LAYOUTS)}")
        if size % 2:
            raise ConfigError(f"sinusoidal positions need an even size, got {size}")
        self.size, self.layout = size, layout

    def call(self, token_ids, position_ids=None):
        if position_ids is None:
            position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None]
        # float32 whatever the compute dtype: bfloat16 cannot count to 512.
        angles = ops.cast(position_ids, "float32")[:, :, None] * self._frequencies()  # [B or 1, S, E/2]
        axis = -1 if self.layout == "interleaved" else -2
        waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=axis)
        return ops.reshape(waves, (*ops.shape(angles)[:2], self.size))

    def _frequencies(self):
        count = self.size // 2
        steps = count if self.layout == "interleaved" else max(count - 1, 1)
        return (10_000.0 ** -(np.arange(count) / steps)).astype("float32")

    def compute_output_spec(self, token_ids, position_ids=None):
        batch = 1 if position_ids is None else position_ids.shape[0]
        return keras.KerasTensor((batch, token_ids.shape[1], self.size), dtype="float32")
