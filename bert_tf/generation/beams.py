"""Beam search: the most probable of several texts that are continued side by side.

One scheme in tensor2tensor, Mesh TensorFlow and Model Garden, and nearly the same in transformers: k texts that go
on ("alive") and k that have ended ("finished"). Each step takes the 2k best continuations of the alive ones; those
that end may join the finished, the best k of the others stay alive.

| | "tensor2tensor" | "huggingface", `early_stopping="never"` |
|---|---|---|
| length penalty, len with stop token | ((5 + len) / 6)^alpha | len^alpha |
| candidates that may finish | all 2k | the best k |
| stops when no alive text can beat | the worst finished one, and there are `n_best` | the worst of k finished ones |
| texts without stop token at the limit | returned if none finished | finished like the others |
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.sampling import SAME, is_any, restrictions_of_texts
from bert_tf.generation.steps import Steps, repeat
from bert_tf.types import Tensor

_NEVER = -1e9


def beam_search(
    steps: Steps, config: Any, restrictions: Restrictions, filler: int = 0, each: Mapping[str, Tensor] = SAME
) -> dict[str, Tensor]:
    """The `config.n_best` best of `config.beams` texts for each prompt.

    Wu et al. 2016 (arXiv:1609.08144), section 7; `tensor2tensor/utils/beam_search.py`, or transformers, by
    `config.beam_variant`; the table above has the differences.

    Args:
        steps: a `DecoderSteps`.
        config: a `GenerationConfig` with method "beam_search".
        restrictions: a `Restrictions`; its `stop_ids` end a text.
        filler: the id after the end of a text.
        each: of `generate_tokens`; `max_new_tokens` and `min_new_tokens`.

    Returns:
        dict, best first: `token_ids` int32 [B, n, N], the new tokens, stop token included; `lengths` int32 [B, n];
        `scores` float32 [B, n], the sum of log-probabilities divided by the length penalty. Where fewer than n texts
        were found, the rest have a score of -1e9 and no tokens.

    Example:
        steps = DecoderSteps(gpt, np.array([[5, 6]]), np.array([[True, True]]), max_new_tokens=4)
        config = GenerationConfig(method="beam_search", beams=3, n_best=2, max_new_tokens=4)
        beam_search(steps, config, Restrictions(stop_ids=(3,)))["token_ids"]  # [1, 2, 4]
    """
    search = _Search(steps, config, restrictions, filler, each)
    if steps.sources:  # each beam reads the one token that its text begins with, so that the graph has the decoder once
        state: Any = (search.steps.token_ids, *search.start(), search.steps.empty_cache())
    else:  # a prompt is read once
        logits, cache = steps.first()
        start: Any = (*search.start(), repeat(cache, config.beams))
        state = search.extend(repeat(logits, config.beams), *start)
    return search.result(ops.while_loop(search.can_continue, search.step, state))


class _Search:
    """The state is (read, index, alive tokens, alive log-probabilities, finished tokens, scores, lengths, cache).

    What is read is [B * k, 1], other tokens are [B, k, N], scores and lengths [B, k], the cache [B * k, ...].
    """

    def __init__(self, steps, config, restrictions, filler, each):
        self.steps, self.beams = steps.repeat(config.beams), config.beams
        self.restrictions = restrictions_of_texts(restrictions, each, config.beams)
        self.limit, self.prompt_length, self.filler = steps.max_new_tokens, steps.prompt_length, filler
        self.hugging_face, self.alpha = config.beam_variant == "huggingface", config.length_penalty
        self.n_best, self.stop_ids = config.n_best, tuple(restrictions.stop_ids)
        self.batch = ops.shape(steps.token_ids)[0]
        self.limits = each["max_new_tokens"][:, None] if "max_new_tokens" in each else self.limit  # [B, 1] or a scalar
        self.real = ops.concatenate(
            [self.steps.padding_mask, ops.ones((self.batch * self.beams, self.limit), dtype="bool")], axis=1
        )

    def start(self):
        """The state before the first token, without what is read and the cache."""
        tokens = ops.zeros((self.batch, self.beams, self.limit), dtype="int32") + ops.cast(self.filler, "int32")
        # All texts of a prompt are alike before the first token: one of them is continued.
        alive = ops.broadcast_to(ops.where(ops.arange(self.beams) > 0, _NEVER, 0.0)[None], (self.batch, self.beams))
        alive = ops.cast(alive, "float32")
        finished = ops.full((self.batch, self.beams), _NEVER, dtype="float32")
        lengths = ops.zeros((self.batch, self.beams), dtype="int32")
        index = ops.convert_to_tensor(0, dtype="int32")
        return index, tokens, alive, tokens, finished, lengths

    def step(self, read, index, alive_tokens, alive, finished_tokens, finished, lengths, cache):
        logits, cache = self.steps.decode(read, cache, index)
        return self.extend(logits, index, alive_tokens, alive, finished_tokens, finished, lengths, cache)

    def can_continue(self, read, index, alive_tokens, alive, finished_tokens, finished, lengths, cache):
        """Whether an alive text may still become better than a finished one."""
        return ops.any(ops.logical_and(index < self.limits, self._can_improve(alive, finished)))

    def _can_improve(self, alive, finished):
        """bool [B, 1]."""
        best_possible = alive[:, :1] / self._penalty(self.limits)
        if self.hugging_face:
            return best_possible > finished[:, -1:]  # a free slot is -1e9
        filled = finished > _NEVER / 2
        worst = ops.min(ops.where(filled, finished, 0.0), axis=1, keepdims=True)
        # Fewer than n_best finished: the original stops at the first, where no alive text can beat it.
        return ops.logical_or(best_possible > worst, ops.logical_not(filled[:, self.n_best - 1 : self.n_best]))

    def extend(self, logits, index, alive_tokens, alive, finished_tokens, finished, lengths, cache):
        """The state with new token number `index`, chosen by `logits` [B * k, V]."""
        k, vocabulary_size = self.beams, logits.shape[-1]
        log_p = ops.log_softmax(logits, axis=-1)
        flat = ops.reshape(alive_tokens, (self.batch * k, self.limit))
        written = ops.concatenate([self.steps.token_ids, flat], axis=1)
        log_p = self.restrictions.apply(log_p, written, self.real, self.prompt_length + index, index)
        log_p = ops.reshape(log_p, (self.batch, k, vocabulary_size)) + alive[:, :, None]
        # Each stop token can end every text: so many more candidates leave k that go on.
        count = k * max(2, 1 + len(self.stop_ids))
        best, places = ops.top_k(ops.reshape(log_p, (self.batch, k * vocabulary_size)), count, sorted=True)
        sources = ops.cast(places // vocabulary_size, "int32")
        tokens = ops.cast(places % vocabulary_size, "int32")
        candidates = _rows(alive_tokens, sources)
        at_index = ops.arange(self.limit, dtype="int32")[None, None] == index
        candidates = ops.where(at_index, tokens[:, :, None], candidates)
        ends = is_any(tokens, self.stop_ids)

        # A prompt whose search is over goes on until those of the others are, too: no text of it can get better.
        short = index < self.limits
        may_finish = ops.logical_and(ends, short)
        if self.hugging_face:
            at_limit = ops.equal(index + 1, self.limits)
            may_finish = ops.logical_and(ops.logical_or(may_finish, at_limit), (ops.arange(count) < k)[None])
        scores = ops.where(ops.logical_and(may_finish, best > _NEVER / 2), best / self._penalty(index + 1), _NEVER)
        finished, order = ops.top_k(ops.concatenate([finished, scores], axis=1), k, sorted=True)
        finished_tokens = _rows(ops.concatenate([finished_tokens, candidates], axis=1), order)
        new_lengths = ops.zeros_like(tokens) + index + 1
        lengths = ops.take_along_axis(ops.concatenate([lengths, new_lengths], axis=1), order, axis=1)

        new_alive, order = ops.top_k(ops.where(ends, best + _NEVER, best), k, sorted=True)
        alive = ops.where(short, new_alive, alive)
        sources, last = (ops.take_along_axis(x, order, axis=1) for x in (sources, tokens))
        rows = ops.reshape(sources + ops.arange(self.batch, dtype="int32")[:, None] * k, (-1,))
        cache = keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), cache)
        alive_tokens = ops.where(ops.expand_dims(short, -1), _rows(candidates, order), alive_tokens)
        return ops.reshape(last, (-1, 1)), index + 1, alive_tokens, alive, finished_tokens, finished, lengths, cache

    def result(self, state):
        _, index, alive_tokens, alive, tokens, scores, lengths, _ = state
        if not self.hugging_face:
            none = ops.logical_not(ops.any(scores > _NEVER / 2, axis=1, keepdims=True))
            tokens = ops.where(none[:, :, None], alive_tokens, tokens)
            size = ops.minimum(index, self.limits)
            cut = ops.where(alive > _NEVER / 2, alive / self._penalty(size), _NEVER)
            scores = ops.where(none, cut, scores)
            lengths = ops.where(none, size, lengths)
        filled = scores > _NEVER / 2
        beyond = ops.arange(self.limit, dtype="int32")[None, None] >= lengths[:, :, None]
        tokens = ops.where(ops.logical_or(beyond, ops.logical_not(filled)[:, :, None]), self.filler, tokens)
        result = {
            "token_ids": tokens,
            "lengths": ops.where(filled, lengths, 0),
            "scores": ops.where(filled, scores, _NEVER),
        }
        return {name: value[:, : self.n_best] for name, value in result.items()}

    def _penalty(self, length):
        length = ops.cast(length, "float32")
        return length**self.alpha if self.hugging_face else ((5 + length) / 6) ** self.alpha


def _rows(x, indices):
    """[B, m, N] at `indices` [B, j]: [B, j, N]."""
    return ops.take_along_axis(x, ops.cast(indices, "int32")[:, :, None], axis=1)
