"""The memory that one segment of a text leaves for the next (Transformer-XL)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("bert_tf")
class SegmentMemory(keras.layers.Layer):
    """The inputs of all layers at the last positions, without gradient.

    Dai et al. 2019, section 3.2; `_cache_mem` in zihangdai/xlnet `modeling.py`.

    Args:
        length: M, the largest number of positions in the memory.
        reuse_length: the number of first positions of the segment that enter the memory, because the
            next segment starts after them; None for all.

    Call arguments:
        hidden_states: list of L float [B, S, H], what each layer read.
        memory: float [B, L, M', H], the memory so far, or None.

    Returns:
        float [B, L, min(M, M' + S), H] in the compute dtype.

    Example:
        SegmentMemory(length=4)([np.ones((2, 3, 8), "float32")] * 2)  # [2, 2, 3, 8]
    """

    def __init__(self, length, reuse_length=None, **kwargs):
        super().__init__(**kwargs)
        self.length = length
        self.reuse_length = reuse_length

    def call(self, hidden_states, memory=None):
        new = ops.stack([states[:, : self.reuse_length] for states in hidden_states], axis=1)
        new = ops.cast(new, self.compute_dtype)
        if memory is not None:
            new = ops.concatenate([memory, new], axis=2)
        return ops.stop_gradient(new[:, :, -self.length :])

    def compute_output_spec(self, hidden_states, memory=None):
        batch, _, size = hidden_states[0].shape
        return keras.KerasTensor((batch, len(hidden_states), None, size), dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "length": self.length, "reuse_length": self.reuse_length}
