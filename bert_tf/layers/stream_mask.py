"""Which keys a query may see, and which of them belong to another segment."""

import keras
from keras import ops

from bert_tf.layers.gather import gather_positions


@keras.saving.register_keras_serializable("bert_tf")
class StreamMask(keras.layers.Layer):
    """Who sees whom in XLNet: padding, packing, memory, and a factorization order.

    Yang et al. 2019, sections 2.2 and 2.3. With an order, a token of the content stream sees those
    of lower or equal rank, itself among them; a query of the query stream sees those of lower rank
    only. Tokens of equal rank see each other: the tokens that are not predicted all have
    the lowest rank of their window. Memory is seen by all.

    The whole [S, S] mask is made here from [S] ranks, S times less data than to read it.

    Call arguments:
        token_ids: [B, S], for its shape only.
        padding_mask: bool [B, S], True at real tokens, or None.
        sequence_ids: int [B, S], 1..k for the texts packed into a sequence, 0 for padding, or
            None.
        memory: [B, L, M, H] or None, for its shape only.
        permutation_order: int [B, S], ranks, or None: everything is seen.
        query_positions: int [B, P], the positions of the query stream's queries; None for the
            content stream.

    Returns:
        bool [B, 1, Q, M + S] with Q = P or S, [B, 1, 1, M + S] without sequences and order, or
        [1, 1, 1, 1] where all is allowed. True where attention is allowed.

    Example:
        order = np.array([[1, 0, 2]])
        StreamMask()(order, permutation_order=order)[0, 0]  # [[True, True, False], [False, True, False], [True] * 3]
    """

    def call(
        self,
        token_ids,
        padding_mask=None,
        sequence_ids=None,
        memory=None,
        permutation_order=None,
        query_positions=None,
    ):
        parts = []
        if padding_mask is not None:
            parts.append(ops.cast(padding_mask, "bool")[:, None, :])
        if sequence_ids is not None:
            query, key = _at(sequence_ids, query_positions)[:, :, None], sequence_ids[:, None, :]
            parts += [ops.equal(query, key), ops.greater(key, 0)]
        if permutation_order is not None:
            key = permutation_order[:, None, :]
            if query_positions is None:
                parts.append(key <= permutation_order[:, :, None])
            else:
                parts.append(key < _at(permutation_order, query_positions)[:, :, None])
        if not parts:
            return ops.ones((1, 1, 1, 1), dtype="bool")
        allowed = parts[0]
        for part in parts[1:]:
            allowed = ops.logical_and(allowed, part)
        if memory is not None:
            batch, queries = ops.shape(allowed)[:2]
            remembered = ops.ones((batch, queries, ops.shape(memory)[2]), dtype="bool")
            allowed = ops.concatenate([remembered, allowed], axis=2)
        return allowed[:, None]

    def compute_output_spec(self, token_ids, *args, **kwargs):
        return keras.KerasTensor((token_ids.shape[0], 1, None, None), dtype="bool")


@keras.saving.register_keras_serializable("bert_tf")
class SegmentsDiffer(keras.layers.Layer):
    """Whether query and key are of different segments (Yang et al. 2019, section 2.5).

    Only that is known of segments, not which they are. As in `transformer_xl` of zihangdai/xlnet
    `modeling.py`, all memory counts as segment 0.

    Call arguments:
        token_ids: [B, S], for its shape only.
        segment_ids: int [B, S]; None means one segment.
        memory: [B, L, M, H] or None, for its shape only.
        query_positions: int [B, P] or None, as in `StreamMask`.

    Returns:
        bool [B, 1, Q, M + S], or [1, 1, 1, 1] without `segment_ids`.

    Example:
        segments = np.array([[0, 1]])
        SegmentsDiffer()(segments, segment_ids=segments)[0, 0]  # [[False, True], [True, False]]
    """

    def call(self, token_ids, segment_ids=None, memory=None, query_positions=None):
        if segment_ids is None:
            return ops.zeros((1, 1, 1, 1), dtype="bool")
        keys = segment_ids
        if memory is not None:
            batch, _, size, _ = ops.shape(memory)
            keys = ops.concatenate([ops.zeros((batch, size), dtype=keys.dtype), keys], axis=1)
        queries = _at(segment_ids, query_positions)
        return ops.not_equal(queries[:, :, None], keys[:, None, :])[:, None]

    def compute_output_spec(self, token_ids, *args, **kwargs):
        return keras.KerasTensor((token_ids.shape[0], 1, None, None), dtype="bool")


def _at(values, positions):
    """int [B, S] at int [B, P]: [B, P]; all of them without positions."""
    if positions is None:
        return values
    return gather_positions(values[:, :, None], positions)[:, :, 0]
