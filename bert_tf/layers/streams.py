"""XLNet's two streams: their embeddings, the masks of their attention, and the memory between segments."""

import functools

import keras
from keras import ops

from bert_tf.backend import Dropout, Layer, RandomNormal
from bert_tf.layers.block_settings import Initializer
from bert_tf.layers.parts import gather_positions
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class StreamEmbeddings(Layer):
    """Token embeddings for the content stream, a learned vector for the query stream.

    Yang et al. 2019, section 2.3 (h and g of layer 0); `transformer_xl` in zihangdai/xlnet
    `modeling.py`. Nothing is added for positions and segments, which attention sees relatively,
    and nothing is normalized.

    Args:
        vocabulary_size: rows of the token table.
        size: H.
        dropout: rate on the result.
        initializer_range: standard deviation of the normal that fills the table and the vector.

    Call arguments:
        token_ids: int [B, S]; with `queries` only its shape counts.
        queries: whether the result is that of the query stream.
        training: whether dropout is active.

    Returns:
        float [B, S, H] in the compute dtype.

    Example:
        StreamEmbeddings(30, 8, dropout=0.1, initializer_range=0.02)(np.zeros((2, 5), "int32"))  # [2, 5, 8]
    """

    def __init__(
        self, vocabulary_size: int, size: int, dropout: float, initializer_range: Initializer, **kwargs: Options
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.size, self.initializer_range = vocabulary_size, size, initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.query_dropout = Dropout(dropout, dtype=self.dtype_policy, name="query_dropout")

    def build(self, token_ids_shape: Shape) -> None:
        def weight(name, *shape):
            # Not cast as a whole under mixed precision, as in `Embeddings`.
            initializer = RandomNormal(stddev=self.initializer_range)
            return self.add_weight(shape=shape, initializer=initializer, autocast=False, name=name)

        self.token_table = weight("token_embeddings", self.vocabulary_size, self.size)
        self.query_vector = weight("query_vector", 1, 1, self.size)

    def call(self, token_ids: Tensor, queries: bool = False, training: bool = False) -> Tensor:
        if not queries:
            x = ops.cast(ops.take(self.token_table, token_ids, axis=0), self.compute_dtype)
            return self.dropout(x, training=training)
        batch, count = ops.shape(token_ids)
        x = ops.broadcast_to(ops.cast(self.query_vector, self.compute_dtype), (batch, count, self.size))
        return self.query_dropout(x, training=training)


@keras.saving.register_keras_serializable("bert_tf")
class StreamMask(Layer):
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
        token_ids: Tensor,
        padding_mask: Tensor = None,
        sequence_ids: Tensor = None,
        memory: Tensor = None,
        permutation_order: Tensor = None,
        query_positions: Tensor = None,
    ) -> Tensor:
        parts = []
        if padding_mask is not None:
            parts.append(ops.cast(padding_mask, "bool")[:, None, :])
        if sequence_ids is not None:
            query, key = _at(sequence_ids, query_positions)[:, :, None], sequence_ids[:, None, :]
            parts += [ops.equal(query, key), ops.greater(key, 0)]
        if permutation_order is not None:
            query, key = _at(permutation_order, query_positions)[:, :, None], permutation_order[:, None, :]
            parts.append(key <= query if query_positions is None else key < query)
        if not parts:
            return ops.ones((1, 1, 1, 1), dtype="bool")
        allowed = functools.reduce(ops.logical_and, parts)
        if memory is not None:
            batch, queries = ops.shape(allowed)[:2]
            remembered = ops.ones((batch, queries, ops.shape(memory)[2]), dtype="bool")
            allowed = ops.concatenate([remembered, allowed], axis=2)
        return allowed[:, None]


@keras.saving.register_keras_serializable("bert_tf")
class SegmentsDiffer(Layer):
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

    def call(
        self, token_ids: Tensor, segment_ids: Tensor = None, memory: Tensor = None, query_positions: Tensor = None
    ) -> Tensor:
        if segment_ids is None:
            return ops.zeros((1, 1, 1, 1), dtype="bool")
        keys = segment_ids
        if memory is not None:
            batch, _, size, _ = ops.shape(memory)
            keys = ops.concatenate([ops.zeros((batch, size), dtype=keys.dtype), keys], axis=1)
        queries = _at(segment_ids, query_positions)
        return ops.not_equal(queries[:, :, None], keys[:, None, :])[:, None]


@keras.saving.register_keras_serializable("bert_tf")
class SegmentMemory(Layer):
    """The memory that one segment of a text leaves for the next: inputs of all layers, without gradient.

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

    def __init__(self, length: int, reuse_length: int | None = None, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.length, self.reuse_length = length, reuse_length

    def call(self, hidden_states: list[Tensor], memory: Tensor = None) -> Tensor:
        new = ops.stack([states[:, : self.reuse_length] for states in hidden_states], axis=1)
        new = ops.cast(new, self.compute_dtype)
        if memory is not None:
            new = ops.concatenate([memory, new], axis=2)
        return ops.stop_gradient(new[:, :, -self.length :])


def _at(values, positions):
    """int [B, S] at int [B, P]: [B, P]; all of them without positions."""
    if positions is None:
        return values
    return gather_positions(values[:, :, None], positions)[:, :, 0]
