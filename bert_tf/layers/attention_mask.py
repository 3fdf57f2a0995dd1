"""Who may attend to whom, as numbers to add to the attention scores."""

import functools

import keras
from keras import ops

from bert_tf.backend import Layer
from bert_tf.types import Options, Tensor

# Added to scores of order ten, in float32: exp() of the sum is exactly zero.
_BLOCKED = -1e9


@keras.saving.register_keras_serializable("bert_tf")
class AttentionMask(Layer):
    """Builds the additive attention mask once per forward pass, for all layers.

    Every query sees the real keys of its own text. A query that sees none (padding in a packed sequence) gets a
    uniform average, which nothing reads.

    Args:
        window: None, or the largest distance at which a token is seen: local attention of 2 * window + 1 tokens
            (Beltagy et al. 2020, section 3.1).
        causal: whether a query sees no key after itself, unless `prefix_mask` allows it.
        backwards: of a causal mask, whether a query sees no key before itself instead.

    Call arguments:
        token_ids: [B, Q], for its shape only.
        padding_mask: bool [B, S], True at real tokens; None means that all are real.
        sequence_ids: int [B, S], 1..k for the texts packed into a sequence and 0 for padding;
            None means one text per sequence.
        prefix_mask: bool [B, S], True at keys that all queries of their text see although the mask is causal
            (prefix language models: Raffel et al. 2020, section 3.2.1); None for none.
        cache_position: int scalar, the position of the first query among the keys in a cache; None for no
            cache, S = Q.
        cache_length: S, the positions of that cache.
        key_sequence_ids: int [B, S], `sequence_ids` of the keys where they are of another text than the queries:
            attention of a decoder to its encoder.

    Returns:
        float32 [B, 1, 1, S], or [B or 1, 1, Q, S] where queries differ in what they see, or [1, 1, 1, 1] where
        nothing is masked; 0 where attention is allowed and -1e9 where it is not. One mask serves all
        heads and, where it can, all queries: S times less memory traffic.

    Example:
        tokens = np.array([[5, 6, 0]])
        AttentionMask()(tokens, padding_mask=tokens > 0)[0, 0]  # [[0, 0, -1e9]]
        AttentionMask(causal=True)(tokens)[0, 0]  # [[0, -1e9, -1e9], [0, 0, -1e9], [0, 0, 0]]
        AttentionMask(causal=True)(tokens[:, :1], cache_position=1, cache_length=3)[0, 0]  # [[0, 0, -1e9]]
    """

    def __init__(
        self, window: int | None = None, causal: bool = False, backwards: bool = False, **kwargs: Options
    ) -> None:
        super().__init__(**kwargs)
        self.window, self.causal, self.backwards = window, causal, backwards

    def call(
        self,
        token_ids: Tensor,
        padding_mask: Tensor = None,
        sequence_ids: Tensor = None,
        prefix_mask: Tensor = None,
        cache_position: Tensor = None,
        cache_length: Tensor = None,
        key_sequence_ids: Tensor = None,
    ) -> Tensor:
        parts = []  # each bool, broadcast to [B, Q, S]
        if sequence_ids is not None:
            keys = sequence_ids if key_sequence_ids is None else key_sequence_ids
            query, key = sequence_ids[:, :, None], keys[:, None, :]
            parts += [ops.equal(query, key), ops.greater(key, 0)]
        if padding_mask is not None:
            parts.append(ops.cast(padding_mask, "bool")[:, None, :])
        if self.causal or self.window is not None:
            length = ops.shape(token_ids)[1]
            query = ops.arange(length, dtype="int32") + (0 if cache_position is None else cache_position)
            key = ops.arange(length if cache_length is None else cache_length, dtype="int32")
            distance = query[None, :, None] - key[None, None, :]
            distance = -distance if self.backwards else distance
            if self.window is not None:
                parts.append(ops.abs(distance) <= self.window)
            if self.causal and prefix_mask is not None:
                parts.append(ops.logical_or(distance >= 0, ops.cast(prefix_mask, "bool")[:, None, :]))
            elif self.causal:
                parts.append(distance >= 0)
        if not parts:
            return ops.zeros((1, 1, 1, 1), dtype="float32")
        allowed = functools.reduce(ops.logical_and, parts)
        return ops.where(allowed[:, None], ops.zeros((), "float32"), ops.full((), _BLOCKED, "float32"))
