"""Attention whose scores depend on content, on relative position and on relative segment."""

import keras
import numpy as np
from keras import ops

from bert_tf.backend import Dropout, Layer, RandomNormal
from bert_tf.layers.attention import check_heads
from bert_tf.layers.block_settings import Initializer
from bert_tf.layers.parts import gather_positions
from bert_tf.types import Options, Settings, Shape, Tensor, Tensors

# Scores are of order ten, in float32: exp() of it less their maximum is exactly zero.
_BLOCKED = -1e9


@keras.saving.register_keras_serializable("bert_tf")
class RelativeAttention(Layer):
    """XLNet's attention, in one stream or in two (Yang et al. 2019, sections 2.3, 2.4 and 2.5).

    `rel_multihead_attn` and `two_stream_rel_attn` in zihangdai/xlnet `modeling.py`. The score of
    query i and key j is

        ((q_i + u) k_j + (q_i + v) W_r r(i - j) + (q_i + w) s(i, j)) / sqrt(d)

    with u, v, w vectors of each head, r the sinusoids of the distance, and s one of two vectors of
    each head: of keys in the query's segment, and of all others. Keys and values are those of the
    content stream, and of the memory before it; the query stream has only queries of its own,
    made by the same kernels, at the P positions that are predicted: S / P times less work than at
    all of them. No projection has a bias. Kernels are [H, n, d], as published checkpoints have
    them.

    Args:
        num_heads: n; divides H.
        dropout: rate on the attention probabilities.
        initializer_range: standard deviation of the normal that fills all weights.

    Call arguments:
        content: float [B, S, H].
        positions: float [M + 2 S, H], of `RelativePositions`.
        mask: bool, broadcast to [B, n, S, M + S], True where attention is allowed. A query that
            may see nothing gets a uniform average of everything.
        differs: bool, broadcast to [B, 1, S, M + S], True where the key's segment is another.
        memory: float [B, M, H], hidden states of the positions before the content, or None.
        backward: bool [B], True for sequences whose text runs backwards: their distances change sign.
            None means that there are none.
        query: the query stream, or None: a dict of `states` float [B, P, H], `positions` int
            [B, P], and `mask` [B, 1, P, M + S] and `differs` [B, 1, P, M + S] as above.
        return_attention_scores: also return the content stream's probabilities.
        training: whether dropout is active.

    Returns:
        dict: `content` float [B, S, H]; with a query stream `query` float [B, P, H]; on request
        `attention_scores` float32 [B, n, S, M + S], the content stream's before dropout.

    Raises:
        ConfigError: H is not a multiple of `num_heads`.

    Example:
        tokens, x = np.zeros((2, 5), "int32"), np.ones((2, 5, 8), "float32")
        positions = RelativePositions(8, clamp_length=None, dropout=0.0)(tokens)
        attention = RelativeAttention(2, dropout=0.0, initializer_range=0.02)
        attention(x, positions, StreamMask()(tokens), SegmentsDiffer()(tokens))["content"]  # [2, 5, 8]
    """

    def __init__(self, num_heads: int, dropout: float, initializer_range: Initializer, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.query_dropout = Dropout(dropout, dtype=self.dtype_policy, name="query_dropout")

    def build(self, content_shape: Shape) -> None:
        hidden_size, heads = content_shape[-1], self.num_heads
        check_heads(hidden_size, heads)
        self.head_size = hidden_size // heads

        def weight(name, *shape):
            initializer = RandomNormal(stddev=self.initializer_range)
            return self.add_weight(shape=shape, initializer=initializer, name=name)

        kernel = (hidden_size, heads, self.head_size)
        self.query_kernel = weight("query_kernel", *kernel)
        self.key_kernel = weight("key_kernel", *kernel)
        self.value_kernel = weight("value_kernel", *kernel)
        self.output_kernel = weight("output_kernel", *kernel)
        self.position_kernel = weight("position_kernel", *kernel)
        self.content_bias = weight("content_bias", heads, self.head_size)
        self.position_bias = weight("position_bias", heads, self.head_size)
        self.segment_bias = weight("segment_bias", heads, self.head_size)
        self.segment_vectors = weight("segment_vectors", 2, heads, self.head_size)

    def call(
        self,
        content: Tensor,
        positions: Tensor,
        mask: Tensor,
        differs: Tensor,
        memory: Tensor = None,
        backward: Tensor = None,
        query: Settings | None = None,
        return_attention_scores: bool = False,
        training: bool = False,
    ) -> Tensors:
        source = content if memory is None else ops.concatenate([memory, content], axis=1)
        keys = _project(source, self.key_kernel)  # [B, M + S, n, d]
        values = _project(source, self.value_kernel)
        distances = self._project_positions(positions, backward)
        heads = _project(content, self.query_kernel)
        by_position = _shift(self._position_scores(heads, distances), ops.shape(keys)[1])
        probabilities = self._probabilities(heads, keys, by_position, mask, differs)
        weights = self.dropout(self._cast(probabilities), training=training)
        outputs = {"content": self._output(weights, values)}
        if return_attention_scores:
            outputs["attention_scores"] = probabilities
        if query is not None:
            heads = _project(query["states"], self.query_kernel)
            by_position = self._position_scores(heads, distances)
            by_position = _shift_rows(by_position, query["positions"], ops.shape(content)[1], ops.shape(keys)[1])
            weights = self._probabilities(heads, keys, by_position, query["mask"], query["differs"])
            weights = self.query_dropout(self._cast(weights), training=training)
            outputs["query"] = self._output(weights, values)
        return outputs

    def _project_positions(self, positions, backward):
        """[R, n, d], or [B, R, n, d] where sequences differ in direction."""
        forward = ops.einsum("rh,hnd->rnd", positions, self.position_kernel)
        if backward is None:
            return forward
        # The sine of a distance of the other sign is the negative, the cosine the same.
        sines, cosines = ops.split(positions, 2, axis=-1)
        mirrored = ops.concatenate([-sines, cosines], axis=-1)
        mirrored = ops.einsum("rh,hnd->rnd", mirrored, self.position_kernel)
        return ops.where(backward[:, None, None, None], mirrored, forward)

    def _position_scores(self, heads, distances):
        """[B, n, Q, R]: of each query and each distance, M + S first and 1 - S last."""
        equation = "bqnd,rnd->bnqr" if len(distances.shape) == 3 else "bqnd,brnd->bnqr"
        return ops.einsum(equation, heads + self.position_bias, distances)

    def _probabilities(self, heads, keys, by_position, mask, differs):
        """float32 [B, n, Q, M + S]."""
        by_content = ops.einsum("bqnd,bknd->bnqk", heads + self.content_bias, keys)
        by_segment = ops.einsum("bqnd,snd->sbnq", heads + self.segment_bias, self.segment_vectors)
        same, other = by_segment[0][..., None], by_segment[1][..., None]  # [B, n, Q, 1]
        # float32 also under mixed precision: bfloat16 has too few digits for a sum of many terms.
        scores = ops.cast(by_content, "float32") + ops.cast(by_position, "float32")
        scores = scores + ops.cast(ops.where(differs, other, same), "float32")
        scores = scores * self.head_size**-0.5
        return ops.softmax(ops.where(mask, scores, ops.full((), _BLOCKED, "float32")))

    def _output(self, weights, values):
        context = ops.einsum("bnqk,bknd->bqnd", weights, values)
        return ops.einsum("bqnd,hnd->bqh", context, self.output_kernel)

    def _cast(self, x):
        return ops.cast(x, self.compute_dtype)


@keras.saving.register_keras_serializable("bert_tf")
class RelativePositions(Layer):
    """The sinusoids of all distances from a query to a key (Dai et al. 2019, section 3.3).

    `relative_positional_encoding` in zihangdai/xlnet `modeling.py`: sines of all frequencies
    first, then cosines, of the distances M + S, M + S - 1, ..., 1 - S. One mask of dropout serves
    the whole batch, whereas the original draws one for each sequence: projecting the sinusoids of each
    sequence would cost twice as much as projecting the keys.

    Args:
        size: H, even.
        clamp_length: distances beyond it count as it; None for no limit.
        dropout: rate on the result.

    Call arguments:
        token_ids: [B, S], for its shape only.
        memory: [B, L, M, H] or None, for its shape only.
        training: whether dropout is active.

    Returns:
        float [M + 2 S, H] in the compute dtype.

    Example:
        RelativePositions(8, clamp_length=None, dropout=0.1)(np.zeros((2, 5), "int32"))  # [10, 8]
    """

    def __init__(self, size: int, clamp_length: int | None, dropout: float, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.clamp_length = clamp_length
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def call(self, token_ids: Tensor, memory: Tensor = None, training: bool = False) -> Tensor:
        length = ops.shape(token_ids)[1]
        keys = length if memory is None else length + ops.shape(memory)[2]
        distances = ops.cast(keys - ops.arange(keys + length, dtype="int32"), "float32")
        if self.clamp_length is not None:
            distances = ops.clip(distances, -self.clamp_length, self.clamp_length)
        frequencies = 10000.0 ** -(np.arange(0, self.size, 2) / self.size)
        # float32 also under mixed precision: bfloat16 cannot count beyond 256.
        angles = distances[:, None] * ops.convert_to_tensor(frequencies, "float32")
        encoding = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return self.dropout(ops.cast(encoding, self.compute_dtype), training=training)


def _project(x, kernel):
    return ops.einsum("bsh,hnd->bsnd", x, kernel)


def _shift(scores, num_keys):
    """Scores by distance to scores by key, where query i is the i-th of S.

    Query i and key j are M + i - j apart, which is column S - i + j: each row starts one column
    further to the left than the row above. Read with one column less a row, the rows do so.

    Args:
        scores: float [B, n, S, R].
        num_keys: M + S.

    Returns:
        float [B, n, S, M + S].
    """
    batch, heads, length, distances = ops.shape(scores)
    scores = ops.reshape(scores, (batch, heads, distances, length))[:, :, 1:]
    scores = ops.reshape(scores, (batch, heads, length, distances - 1))
    return scores[..., :num_keys]


def _shift_rows(scores, positions, length, num_keys):
    """As `_shift`, where query p is at `positions[b, p]` of S.

    Args:
        scores: float [B, n, P, R].
        positions: int [B, P].
        length: S.
        num_keys: M + S.

    Returns:
        float [B, n, P, M + S].
    """
    batch, heads, count, distances = ops.shape(scores)
    # Heads innermost: n times fewer look-ups, each of n numbers.
    scores = ops.reshape(ops.transpose(scores, (0, 2, 3, 1)), (batch, count * distances, heads))
    first = length - positions + ops.arange(count, dtype=positions.dtype) * distances  # [B, P]
    columns = first[:, :, None] + ops.arange(num_keys, dtype=positions.dtype)
    scores = gather_positions(scores, ops.reshape(columns, (batch, count * num_keys)))
    return ops.transpose(ops.reshape(scores, (batch, count, num_keys, heads)), (0, 3, 1, 2))
