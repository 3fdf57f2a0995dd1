"""Generates with the method that a configuration names."""

from collections.abc import Callable, Mapping

from bert_tf.generation.beams import beam_search
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.sampling import SAME, generate_tokens
from bert_tf.generation.steps import Steps
from bert_tf.types import Tensor


def generate(
    steps: Steps,
    config: GenerationConfig,
    restrictions: Restrictions,
    filler: int = 0,
    each: Mapping[str, Tensor] = SAME,
    ends: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> dict[str, Tensor]:
    """Generates tokens for each prompt with `beam_search` or `generate_tokens`, by `config.method`.

    Args:
        steps, config, restrictions, filler, each: of `generate_tokens`.
        ends: of `generate_tokens`. Beam search ignores it: only stop tokens end a text there.

    Returns:
        dict, best first: `token_ids` int32 [B, n, N]; `lengths` int32 and `scores` float32 [B, n]; n is
        `config.n_best`, and 1 with greedy generation and sampling.

    Example:
        steps = DecoderSteps(gpt, np.array([[5, 6]]), np.array([[True, True]]), max_new_tokens=4)
        generate(steps, GenerationConfig(max_new_tokens=4), Restrictions(stop_ids=(3,)))["token_ids"]  # [1, 1, 4]
    """
    if config.method == "beam_search":
        return beam_search(steps, config, restrictions, filler, each)
    found = generate_tokens(steps, config, restrictions, filler, each, ends)
    return {name: value[:, None] for name, value in found.items()}
