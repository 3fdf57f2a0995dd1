"""Who may attend to whom, as numbers to add to the attention scores."""

import keras
from keras import ops

# Added to scores of order ten, in float32: exp() of the sum is exactly zero.
_BLOCKED = -1e9


@keras.saving.register_keras_serializable("bert_tf")
class AttentionMask(keras.layers.Layer):
    """Builds the additive attention mask once per forward pass, for all layers.

    Every query sees the real keys of its own sequence. A query that sees none (padding in a
    packed row) gets a uniform average, which nothing reads.

    Args:
        window: None, or the largest distance at which a token is seen: local attention as in
            Longformer (Beltagy et al. 2020, section 3.1), of 2 * window + 1 tokens. Distances are
            counted in the row, which within a packed sequence is the same.

    Call arguments:
        token_ids: [B, S], for its shape only.
        padding_mask: bool [B, S], True at real tokens; None means that all are real.
        sequence_ids: int [B, S], 1..k for the sequences packed into a row and 0 for padding;
            None means one sequence per row.

    Returns:
        float32 [B, 1, 1, S], or [B, 1, S, S] with `sequence_ids` or a window, or [1, 1, 1, 1] where
        nothing is masked; 0 where attention is allowed and -1e9 where it is not. One mask serves all
        heads and, without packing, all queries: S times less memory traffic.
    """

    def __init__(self, window=None, **kwargs):
        super().__init__(**kwargs)
        self.window = window

    def call(self, token_ids, padding_mask=None, sequence_ids=None):
        if sequence_ids is not None:
            query, key = sequence_ids[:, :, None], sequence_ids[:, None, :]
            allowed = ops.logical_and(ops.equal(query, key), ops.greater(key, 0))  # [B, S, S]
            if padding_mask is not None:
                allowed = ops.logical_and(allowed, ops.cast(padding_mask, "bool")[:, None, :])
            allowed = allowed[:, None, :, :]
        elif padding_mask is not None:
            allowed = ops.cast(padding_mask, "bool")[:, None, None, :]
        elif self.window is None:
            return ops.zeros((1, 1, 1, 1), dtype="float32")
        else:
            allowed = ops.ones((1, 1, 1, 1), dtype="bool")
        if self.window is not None:
            place = ops.arange(ops.shape(token_ids)[1])
            near = ops.abs(place[:, None] - place[None, :]) <= self.window  # [S, S]
            allowed = ops.logical_and(allowed, near)
        return ops.where(allowed, ops.zeros((), "float32"), ops.full((), _BLOCKED, "float32"))

    def compute_output_spec(self, token_ids, padding_mask=None, sequence_ids=None):
        batch, length = token_ids.shape
        return keras.KerasTensor((batch, 1, None, length), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "window": self.window}
