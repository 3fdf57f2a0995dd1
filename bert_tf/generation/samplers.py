"""How the tokens of a text are chosen: one `Sampler` for each `method` of `GenerationConfig`.

The list is read before Keras is imported: samplers import where they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bert_tf.registry import Registry
from bert_tf.types import Tensor

if TYPE_CHECKING:
    from bert_tf.generation.generation_config import GenerationConfig
    from bert_tf.generation.restrictions import Restrictions
    from bert_tf.generation.steps import Steps


class Sampler:
    """Chooses one token after the other. One that owns the whole loop, as beam search does, overrides `generate`.

    Attributes:
        name: the value of `method`.
        settings: the settings of `GenerationConfig` that it reads, beside those that every method has.

    Example:
        class Least(Sampler):
            name = "least"

            def choose(self, logits, config, index, each):
                return ops.cast(ops.argmin(logits, axis=-1), "int32")

        SAMPLERS.register(Least())
        GenerationConfig(method="least")
    """

    name = ""
    settings: tuple[str, ...] = ()

    @property
    def streams(self) -> bool:
        """Whether a token is final as soon as it is chosen."""
        return type(self).generate is Sampler.generate

    def choose(self, logits: Tensor, config: GenerationConfig, index: Tensor, each: Mapping[str, Tensor]) -> Tensor:
        """The next token of each text: int32 [B].

        Args:
            logits: float32 [B, V], those of forbidden tokens -1e9.
            config: a `GenerationConfig`.
            index: int scalar, the number of the new token.
            each: of `generate_tokens`.
        """
        raise NotImplementedError

    def generate(
        self,
        steps: Steps,
        config: GenerationConfig,
        restrictions: Restrictions,
        filler: int = 0,
        each: Mapping[str, Tensor] | None = None,
        ends: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Generates tokens for each prompt.

        Args:
            steps, config, restrictions, filler, each, ends: of `generate_tokens`.

        Returns:
            dict, best first: `token_ids` int32 [B, n, N]; `lengths` int32 and `scores` float32 [B, n]; n is 1, and with
            beam search `config.n_best`.

        Example:
            steps = DecoderSteps(gpt, np.array([[5, 6]]), np.array([[True, True]]), max_new_tokens=4)
            SAMPLERS["greedy"].generate(steps, GenerationConfig(), Restrictions(stop_ids=(3,)))["token_ids"]  # [1, 1, 4]
        """
        from bert_tf.generation.sampling import generate_tokens

        generated = generate_tokens(steps, config, restrictions, filler, each or {}, ends, self)
        return {name: value[:, None] for name, value in generated.items()}


class _Greedy(Sampler):
    name = "greedy"

    def choose(self, logits, config, index, each):
        from bert_tf.backend import largest

        return largest(logits)


class _Sample(Sampler):
    name, settings = "sample", ("temperature", "top_k", "top_p", "seed")

    def choose(self, logits, config, index, each):
        from bert_tf.generation.sampling import sample

        return sample(logits, config, index, each)


class _BeamSearch(Sampler):
    name, settings = "beam_search", ("beams", "n_best", "beam_variant", "length_penalty")

    def generate(self, steps, config, restrictions, filler=0, each=None, ends=None):
        """See `Sampler.generate`. Only stop tokens end a text: `ends` is not read."""
        from bert_tf.generation.beams import beam_search

        return beam_search(steps, config, restrictions, filler, each or {})


#: Name -> `Sampler`.
SAMPLERS = Registry("sampler", "method", [_Greedy(), _Sample(), _BeamSearch()])
