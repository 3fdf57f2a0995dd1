"""Greedy generation and sampling: one text for each prompt."""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.backend import uniform_of
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.samplers import SAMPLERS, Sampler
from bert_tf.generation.steps import Steps
from bert_tf.types import Tensor

#: The settings that differ between the texts of a batch, where none does.
SAME: Mapping[str, Tensor] = types.MappingProxyType({})


def generate_tokens(
    steps: Steps,
    config: GenerationConfig,
    restrictions: Restrictions,
    filler: int = 0,
    each: Mapping[str, Tensor] = SAME,
    ends: Callable[[Tensor, Tensor], Tensor] | None = None,
    sampler: Sampler | None = None,
) -> dict[str, Tensor]:
    """Generates token by token until every text has ended or has `steps.max_new_tokens` tokens.

    Args:
        steps: a `DecoderSteps`.
        config: a `GenerationConfig` whose sampler chooses one token after the other.
        restrictions: a `Restrictions`; its `stop_ids` end a text.
        filler: the id after the end of a text.
        each: dict, the settings that each text has of its own: "max_new_tokens", "min_new_tokens", "seed",
            "temperature", "top_k" or "top_p" -> tensor [B]. A text with a seed of its own draws from the stream
            (seed, 0), wherever it is in the batch. A seed that is a scalar tensor replaces `config.seed`: text i draws
            from the stream (seed, i).
        ends: function(the tokens written so far int32 [B, N], their number int32 [B]) -> bool [B], which texts end
            with their last token, such as a `StopStrings`; None where stop tokens alone end a text.
        sampler: which chooses; None for that of `config.method`.

    Returns:
        dict: `token_ids` int32 [B, N], the new tokens, with the one that ends the text, `filler` after it; `lengths`
        int32 [B], tokens of each text, with the one that ends it; `scores` float32 [B], the sum of the
        log-probabilities that the model gives to these tokens (before temperature, top_k, top_p and restrictions).

    Example:
        steps = DecoderSteps(gpt, np.array([[5, 6]]), np.array([[True, True]]), max_new_tokens=4)
        generate_tokens(steps, GenerationConfig(max_new_tokens=4), Restrictions(stop_ids=(3,)))["token_ids"]  # [1, 4]
    """
    batch, prompt_length = ops.shape(steps.token_ids)
    limit = steps.max_new_tokens
    limits = each.get("max_new_tokens", limit)
    restrictions = restrictions_of_texts(restrictions, each)
    tokens = ops.concatenate(
        [steps.token_ids, ops.zeros((batch, limit), dtype="int32") + ops.cast(filler, "int32")], axis=1
    )
    real = ops.concatenate([steps.padding_mask, ops.ones((batch, limit), dtype="bool")], axis=1)
    columns = ops.arange(ops.shape(tokens)[1], dtype="int32")[None]
    stop_ids = tuple(restrictions.stop_ids)

    def extend(index, logits, tokens, ended, lengths, scores):
        """New token number `index`, and the state with it."""
        column = prompt_length + index
        token = next_token(logits, tokens, real, column, index, config, restrictions, each, sampler)
        log_p = ops.take_along_axis(ops.log_softmax(logits, axis=-1), token[:, None], axis=-1)[:, 0]
        written = ops.logical_and(columns == column, ops.logical_not(ended)[:, None])
        tokens = ops.where(written, token[:, None], tokens)
        lengths = lengths + ops.cast(ops.logical_not(ended), "int32")
        scores = scores + ops.where(ended, 0.0, log_p)
        last = ops.logical_or(is_any(token, stop_ids), index + 1 >= limits)
        if ends:
            last = ops.logical_or(last, ends(tokens[:, prompt_length:], lengths))
        return token, index + 1, tokens, ops.logical_or(ended, last), lengths, scores

    def is_unfinished(read, index, tokens, ended, lengths, scores, cache):
        return ops.logical_and(index < limit, ops.logical_not(ops.all(ended)))

    def body(read, index, tokens, ended, lengths, scores, cache):
        logits, cache = steps.decode(read, cache, index)
        token, *state = extend(index, logits, tokens, ended, lengths, scores)
        return (token[:, None], *state, cache)

    nothing = ops.zeros_like(steps.token_ids[:, 0])
    index = ops.convert_to_tensor(0, dtype="int32")
    start: Any = (index, tokens, nothing > 0, nothing, ops.cast(nothing, "float32"))
    if steps.sources:  # a text begins with one token, as long as each later one: the graph has the decoder once
        state = (steps.token_ids, *start, steps.empty_cache())
    else:
        # Not so with prompts: a server that keeps weights in oneDNN's layout would pack them anew for each length.
        logits, cache = steps.first()
        token, *start = extend(index, logits, *start[1:])
        state = (token[:, None], *start, cache)
    _, _, tokens, _, lengths, scores, _ = ops.while_loop(is_unfinished, body, state)
    return {"token_ids": tokens[:, prompt_length:], "lengths": lengths, "scores": scores}


def next_token(
    logits: Tensor,
    tokens: Tensor,
    real: Tensor,
    column: Tensor,
    index: Tensor,
    config: GenerationConfig,
    restrictions: Restrictions,
    each: Mapping[str, Tensor] = SAME,
    sampler: Sampler | None = None,
) -> Tensor:
    """int32 [B]: the tokens that `sampler`, or else that of `config.method`, chooses; the other arguments are those of `Restrictions.apply`."""
    logits = restrictions.apply(logits, tokens, real, column, index)
    return (sampler or SAMPLERS[config.method]).choose(logits, config, index, each)


def restrictions_of_texts(restrictions: Restrictions, each: Mapping[str, Tensor], count: int = 1) -> Restrictions:
    """The `Restrictions` with each text's own minimum length, `count` times one after the other."""
    if "min_new_tokens" not in each:
        return restrictions
    return dataclasses.replace(restrictions, min_new_tokens=ops.repeat(each["min_new_tokens"], count))


def sample(logits: Tensor, config: GenerationConfig, index: Tensor, each: Mapping[str, Tensor] = SAME) -> Tensor:
    """A random token a row: int32 [B] from float32 [B, V].

    By inversion: one uniform number a row, compared with the cumulative probabilities. It is a pure function of
    (config.seed, row, index). Temperature, then top_k, then top_p. Of equal logits the lower ids count as the more
    probable ones: exactly k tokens stay (openai/gpt-2 keeps all that equal the k-th), and no more than top_p needs.

    Args:
        logits: float32 [B, V].
        config: a `GenerationConfig`.
        index: int scalar, the number of the new token.
        each: of `generate_tokens`. A text's own `top_k` is at most `config.top_k`.
    """
    columns = {name: each[name][:, None] for name in ("temperature", "top_k", "top_p") if name in each}  # [B, 1]
    logits = logits / columns.get("temperature", config.temperature)
    top_p = columns.get("top_p", config.top_p)
    ids = None
    if config.top_k is not None or top_p is not None or "top_k" in each:
        logits, ids = ops.top_k(logits, min(config.top_k or logits.shape[-1], logits.shape[-1]), sorted=True)
        if "top_k" in each:
            logits = ops.where(ops.arange(logits.shape[-1], dtype="int32") < columns["top_k"], logits, -1e9)
    probabilities = ops.softmax(logits, axis=-1)
    cumulative = ops.cumsum(probabilities, axis=-1)
    if top_p is not None:
        before = ops.pad(cumulative, [(0, 0), (1, 0)], constant_values=-1.0)[:, :-1]  # -1: the best token stays
        cumulative = ops.cumsum(ops.where(before < top_p, probabilities, 0.0), axis=-1)
    total = cumulative[:, -1:]
    seed = ops.convert_to_tensor(each.get("seed", config.seed), dtype="int32")
    numbers = ops.arange(ops.shape(logits)[0], dtype="int32") * (0 if len(seed.shape) else 1)
    below = uniform_of(seed, numbers, index)[:, None] * total
    choice = ops.sum(ops.cast(cumulative <= below, "int32"), axis=-1, keepdims=True)
    choice = ops.minimum(choice, logits.shape[-1] - 1)
    return ops.cast(choice if ids is None else ops.take_along_axis(ids, choice, axis=-1), "int32")[:, 0]


def is_any(token_ids: Tensor, ids: Sequence[int]) -> Tensor:
    """bool of the shape of `token_ids`: which are among `ids`, a tuple of int."""
    matches = token_ids < 0
    for i in ids:
        matches = ops.logical_or(matches, token_ids == i)
    return matches
