"""The logits of a model after the prompt, and after each further token: the interface that generation needs."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.types import Tensor


class Steps:
    """What generation asks of a model: the base of `DecoderSteps`, and of a class for a model of your own.

    A subclass has the attributes, `empty_cache` and `decode`; for beam search also `repeat`.

    Attributes:
        token_ids: int32 [B, S], what the texts begin with.
        padding_mask: bool [B, S], True at real tokens.
        prompt_length: S.
        max_new_tokens: N, an int or an int scalar tensor.
        sources: what the model reads beside the texts, a list or tuple; each text then begins with one token. Empty for a
            decoder.

    Example:
        import numpy as np
        from keras import ops
        from bert_tf.generation import GenerationConfig, Restrictions, Steps, generate_tokens

        class Bigrams(Steps):
            def __init__(self, table, token_ids, max_new_tokens):
                self.table, self.token_ids, self.max_new_tokens = table, token_ids, max_new_tokens
                self.padding_mask, self.prompt_length = token_ids >= 0, token_ids.shape[1]

            def empty_cache(self):
                return ()

            def decode(self, token_ids, cache, index):
                return ops.take(self.table, token_ids[:, -1], axis=0), cache

        table = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "float32")
        steps = Bigrams(table, np.array([[0]], "int32"), max_new_tokens=3)
        generate_tokens(steps, GenerationConfig(max_new_tokens=3), Restrictions())["token_ids"]  # [[1, 2, 0]]
    """

    token_ids: Tensor
    padding_mask: Tensor
    prompt_length: Any
    max_new_tokens: int | Tensor
    sources: Any = ()

    def first(self) -> tuple[Tensor, Any]:
        """The logits of the first new token, float32 [B, V], and the cache: a nest of tensors [B, ...]."""
        return self.decode(self.token_ids, self.empty_cache(), 0)

    def next(self, token_ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        """The logits and the cache after new token number `index`, which is `token_ids` int32 [B]."""
        return self.decode(token_ids[:, None], cache, index + 1)

    def empty_cache(self) -> Any:
        """The cache before the first token."""
        raise NotImplementedError

    def decode(self, token_ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        """The logits of new token number `index`, and the cache.

        Args:
            token_ids: int32 [B, Q], the tokens before it that are not in the cache: for number 0 the prompts.
            cache: of `empty_cache` or of the last call.
            index: int scalar.
        """
        raise NotImplementedError


class DecoderSteps(Steps):
    """A decoder that continues prompts, token by token, with a cache.

    Args:
        model: a `Decoder`.
        token_ids: int32 [B, S], the prompts. Shorter ones are padded on the left, so that all texts of a batch
            write the same column of the cache.
        padding_mask: bool [B, S], True at real tokens.
        max_new_tokens: N, an int or an int scalar tensor.

    Example:
        steps = DecoderSteps(gpt, np.array([[5, 6, 7]]), np.array([[False, True, True]]), max_new_tokens=4)
        logits, cache = steps.first()  # [1, V]
        logits, cache = steps.next(ops.argmax(logits, axis=-1), cache, 0)
    """

    def __init__(self, model: Any, token_ids: Tensor, padding_mask: Tensor, max_new_tokens: int | Tensor) -> None:
        self._model, self.token_ids = model, ops.cast(token_ids, "int32")
        self.padding_mask = ops.cast(padding_mask, "bool")
        self.prompt_length = ops.shape(token_ids)[1]
        self.max_new_tokens = max_new_tokens
        self._seen, self._position_ids = _with_new_tokens(self.padding_mask, max_new_tokens)

    def empty_cache(self) -> Any:
        batch, length = ops.shape(self.token_ids)
        return self._model.empty_cache(batch, length + self.max_new_tokens)

    def decode(self, token_ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        size = ops.shape(token_ids)[1]
        position = self.prompt_length + index - size
        columns = ops.arange(size, dtype="int32") + position
        position_ids = ops.take(self._position_ids, columns, axis=1)
        x, cache = self._model.decode(token_ids, cache, position, self._seen, position_ids)
        return ops.cast(self._model.output_logits(x[:, -1]), "float32"), cache

    def repeat(self, count: int) -> DecoderSteps:
        """The same steps with every prompt `count` times, one after the other: [B * count, ...], and no cache."""
        prompts, mask = (ops.repeat(x, count, axis=0) for x in (self.token_ids, self.padding_mask))
        return DecoderSteps(self._model, prompts, mask, self.max_new_tokens)


class EncoderDecoderSteps(Steps):
    """An encoder-decoder that writes a text for each text that it reads.

    Args:
        model: an `EncoderDecoder`.
        token_ids: int32 [B, S], the texts that are read.
        padding_mask: bool [B, S], True at real tokens.
        max_new_tokens: N, an int or an int scalar tensor.
        start_id: the token that every written text begins with; it is not part of the result. T5's is padding.
        sources: of `EncoderDecoder.sources`, where they were computed before; None computes them. Also an attribute.

    Example:
        t5 = T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        steps = EncoderDecoderSteps(t5, np.array([[5, 6, 1]]), np.ones((1, 3), bool), max_new_tokens=4, start_id=0)
        logits, cache = steps.first()  # [1, 100]
    """

    def __init__(
        self,
        model: Any,
        token_ids: Tensor,
        padding_mask: Tensor,
        max_new_tokens: int | Tensor,
        start_id: int,
        sources: Any = None,
    ) -> None:
        self._model, self._start_id, self.max_new_tokens = model, start_id, max_new_tokens
        self._source_mask = ops.cast(padding_mask, "bool")
        token_ids = ops.cast(token_ids, "int32")
        self.sources = model.sources(model.encode(token_ids, self._source_mask)) if sources is None else sources
        self.token_ids = ops.zeros_like(token_ids[:, :1]) + start_id
        self.padding_mask = ops.ones_like(self.token_ids, dtype="bool")
        self.prompt_length = 1

    def empty_cache(self) -> Any:
        return self._model.empty_cache(ops.shape(self.token_ids)[0], 1 + self.max_new_tokens)

    def decode(self, token_ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        x, cache = self._model.decode(token_ids, cache, index, self.sources, self._source_mask)
        return ops.cast(self._model.output_logits(x[:, -1]), "float32"), cache

    def repeat(self, count: int) -> EncoderDecoderSteps:
        """See `DecoderSteps`."""
        # The encoder does not run again: the shape of its input does not matter any more.
        tokens, mask = (ops.repeat(x, count, axis=0) for x in (self.token_ids, self._source_mask))
        sources = repeat(self.sources, count)
        return EncoderDecoderSteps(self._model, tokens, mask, self.max_new_tokens, self._start_id, sources)


def _with_new_tokens(padding_mask, max_new_tokens):
    """The mask of the cache's columns, bool [B, S + N], and the position ids of the same, counted from the prompt."""
    batch, _length = ops.shape(padding_mask)
    mask = ops.concatenate([padding_mask, ops.ones((batch, max_new_tokens), dtype="bool")], axis=1)
    return mask, ops.maximum(ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1, 0)


def repeat(nest: Any, count: int) -> Any:
    """Each row of every tensor [B, ...] `count` times: [B * count, ...]."""
    batch = ops.shape(keras.tree.flatten(nest)[0])[0]
    rows = ops.arange(batch * count, dtype="int32") // count  # with `ops.repeat` each tensor would be 40 operators
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), nest)
