"""Excludes tokens (their logits become -1e9), and lowers the logits of repeated ones."""

import dataclasses

import numpy as np
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.types import Tensor

_NEVER = -1e9


@dataclasses.dataclass(frozen=True)
class Restrictions:
    """Which tokens may come next.

    Args:
        stop_ids: int sequence, the tokens that end a text.
        min_new_tokens: int, or int32 [B] for each text: no stop token is chosen before so many others.
        no_repeat_ngram: n; a token that would complete n tokens that were there before is not chosen. None for no
            limit.
        allowed_ids: int sequence, the only tokens that may be chosen; None for all. Stop tokens are allowed too.
        repetition_penalty: what the logits of tokens that were there before are divided by, or multiplied by where
            they are negative.

    Raises:
        ConfigError: `allowed_ids` is empty.

    Example:
        digits_only = Restrictions(stop_ids=[0], allowed_ids=range(10, 20))
    """

    stop_ids: tuple[int, ...] = ()
    min_new_tokens: int | Tensor = 0
    no_repeat_ngram: int | None = None
    allowed_ids: tuple[int, ...] | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.allowed_ids is not None and len(self.allowed_ids) == 0:
            raise ConfigError("allowed_ids is empty; name at least one token")

    def apply(self, logits: Tensor, tokens: Tensor, real: Tensor, column: Tensor, index: Tensor) -> Tensor:
        """The logits with those of excluded tokens at -1e9, and those of repeated tokens lowered.

        Args:
            logits: float32 [B, V]; in beam search log-probabilities, as in transformers.
            tokens: int32 [B, L], prompt and text as far as it is written.
            real: bool [B, L], False at the padding of prompts.
            column: int scalar, where in `tokens` the next token will be.
            index: int scalar, how many new tokens there are.

        Returns:
            float32 [B, V].
        """
        vocabulary_size = logits.shape[-1]
        if self.repetition_penalty != 1:
            written = ops.logical_and(real, (ops.arange(ops.shape(tokens)[1], dtype="int32") < column)[None])
            lower = ops.where(logits < 0, logits * self.repetition_penalty, logits / self.repetition_penalty)
            logits = ops.where(_among(tokens, written, vocabulary_size), lower, logits)
        if self.allowed_ids is not None:
            allowed = np.zeros(vocabulary_size, bool)
            allowed[[*self.allowed_ids, *self.stop_ids]] = True
            logits = ops.where(allowed, logits, _NEVER)
        never = isinstance(self.min_new_tokens, int) and self.min_new_tokens == 0
        if len(self.stop_ids) and not never:
            is_stop = np.zeros(vocabulary_size, bool)
            is_stop[list(self.stop_ids)] = True
            too_short = ops.reshape(index < self.min_new_tokens, (-1, 1))
            logits = ops.where(ops.logical_and(too_short, is_stop), _NEVER, logits)
        if self.no_repeat_ngram is not None:
            logits = _without_repeats(logits, tokens, real, column, self.no_repeat_ngram)
        return logits


def _without_repeats(logits, tokens, real, column, n):
    """Excludes what followed each earlier occurrence of the last n - 1 tokens."""
    columns = ops.arange(ops.shape(tokens)[1], dtype="int32")
    matches = ops.logical_and(real, (columns < column)[None])  # at the last token of each earlier n-gram
    for back in range(1, n):
        earlier, latest = _shift(tokens, back), _at(tokens, column - back)
        both_real = ops.logical_and(_shift(real, back), _at(real, column - back)[:, None])
        matches = ops.logical_and(matches, ops.logical_and(both_real, earlier == latest[:, None]))
    return ops.where(_among(tokens, matches, logits.shape[-1]), _NEVER, logits)


def _among(tokens, chosen, vocabulary_size):
    """bool [B, V]: the ids that `tokens` int32 [B, L] has where `chosen`, bool [B, L], is True."""
    batch = ops.shape(tokens)[0]
    ids = ops.where(chosen, tokens, vocabulary_size)  # one column more, for those that are not chosen
    rows = ops.broadcast_to(ops.arange(batch, dtype="int32")[:, None], ops.shape(tokens))
    indices = ops.reshape(ops.stack([rows, ids], axis=-1), (-1, 2))
    nothing = ops.zeros((batch, vocabulary_size + 1), dtype="int32")
    marked = ops.scatter_update(nothing, indices, ops.ones_like(indices[:, 0]))
    return ops.cast(marked[:, :vocabulary_size], "bool")


def _shift(x, count):
    """[B, L] moved `count` columns to the right, zeros in front."""
    length = ops.shape(x)[1]
    return ops.pad(ops.cast(x, "int32"), [(0, 0), (count, 0)])[:, :length]


def _at(x, column):
    """[B]: one column of [B, L]; of column -1 something that the caller must not use."""
    return ops.take(ops.cast(x, "int32"), ops.maximum(column, 0), axis=1)
