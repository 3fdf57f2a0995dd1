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

    Call arguments:
        token_ids: [B, S], for its shape only.
        padding_mask: bool [B, S], True at real tokens; None means that all are real.
        sequence_ids: int [B, S], 1..k for the sequences packed into a row and 0 for padding;
            None means one sequence per row.

    Returns:
        float32 [B, 1, 1, S], or [B, 1, S, S] with `sequence_ids`, or [1, 1, 1, 1] where nothing
        is masked; 0 where attention is allowed and -1e9 where it is not. One mask serves all
        heads and, without packing, all queries: S times less memory traffic.
    """

    def call(self, token_ids, padding_mask=None, sequence_ids=None):
        if sequence_ids is not None:
            query, key = sequence_ids[:, :, None], sequence_ids[:, None, :]
            allowed = ops.logical_and(ops.equal(query, key), ops.greater(key, 0))  # [B, S, S]
            if padding_mask is not None:
                allowed = ops.logical_and(allowed, ops.cast(padding_mask, "bool")[:, None, :])
            allowed = allowed[:, None, :, :]
        elif padding_mask is not None:
            allowed = ops.cast(padding_mask, "bool")[:, None, None, :]
        else:
            return ops.zeros((1, 1, 1, 1), dtype="float32")
        return ops.where(allowed, ops.zeros((), "float32"), ops.full((), _BLOCKED, "float32"))

    def compute_output_spec(self, token_ids, padding_mask=None, sequence_ids=None):
        batch, length = token_ids.shape
        return keras.KerasTensor((batch, 1, None, length), dtype="float32")
