"""The settings of generation. No Keras is imported."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from bert_tf.config import Range, build, check_fields
from bert_tf.errors import ConfigError
from bert_tf.generation.samplers import SAMPLERS


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """How tokens are chosen, and when a text ends.

    Attributes:
        method: a name of `SAMPLERS`. "greedy": the most probable token; "sample": a random one; "beam_search": the most
            probable texts of several that are continued side by side.
        max_new_tokens: the most tokens that are generated for a prompt, stop tokens included.
        min_new_tokens: no stop token is generated before so many others.
        temperature: "sample" only: logits are divided by it. Below 1 probable tokens become more probable.
        top_k: "sample" only: the k most probable tokens are drawn from; None for all.
        top_p: "sample" only: the smallest set of most probable tokens that together have at least this probability
            is drawn from; the token that crosses it belongs to the set (Holtzman et al. 2020, section 3.1).
            (openai/gpt-2 leaves that token out.) Applied after temperature and top_k. None for all.
        seed: "sample" only: of the random numbers. Text i of a request draws from the stream (seed, i).
        beams: "beam_search" only: k, the texts that are continued side by side.
        n_best: "beam_search" only: the texts that are returned for a prompt, best first; at most `beams`.
        beam_variant: "beam_search" only. "tensor2tensor": as tensor2tensor, Mesh and Model Garden; "huggingface": as
            `generate(early_stopping="never")` of transformers 5. They differ in the length penalty, in which
            candidates may finish, and in what counts at the end; see beams.py.
        length_penalty: "beam_search" only: alpha; 0 compares sums of log-probabilities. The published
            Transformer and T5 use 0.6 ("tensor2tensor").
        no_repeat_ngram: no sequence of so many tokens comes twice in prompt and text together; None for no limit.
        repetition_penalty: logits of tokens of prompt and text are divided by it, negative ones multiplied (Keskar et
            al. 2019, section 4.1, which has 1.2; negative ones as in transformers). 1 for no penalty. An
            encoder-decoder's prompt does not count.
        stop_strings: a text ends before the first of these strings. Greedy generation and sampling stop there, and the
            score counts the tokens up to it; beam search goes on to a stop token, and its texts are cut afterwards.

    Raises:
        ConfigError: a value out of its range, or settings of another method.

    Example:
        GenerationConfig(method="sample", top_p=0.9, max_new_tokens=100)
    """

    method: str = "greedy"
    max_new_tokens: Annotated[int, Range(at_least=1)] = 64
    min_new_tokens: Annotated[int, Range(at_least=0)] = 0
    temperature: Annotated[float, Range(above=0)] = 1.0
    top_k: Annotated[int | None, Range(at_least=1)] = None
    top_p: Annotated[float | None, Range(above=0, at_most=1)] = None
    seed: Annotated[int, Range(at_least=0, below=2**31)] = 0
    beams: Annotated[int, Range(at_least=1, at_most=1_000)] = 4
    n_best: Annotated[int, Range(at_least=1)] = 1
    beam_variant: Literal["tensor2tensor", "huggingface"] = "tensor2tensor"
    length_penalty: Annotated[float, Range(at_least=0)] = 0.6
    no_repeat_ngram: Annotated[int | None, Range(at_least=1)] = None
    repetition_penalty: Annotated[float, Range(above=0)] = 1.0
    stop_strings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.min_new_tokens > self.max_new_tokens:
            raise ConfigError(
                f"min_new_tokens={self.min_new_tokens} is above max_new_tokens={self.max_new_tokens}; lower it"
            )
        if self.n_best > self.beams:
            raise ConfigError(f"n_best={self.n_best} is above beams={self.beams}; raise beams")
        _ = SAMPLERS[self.method]
        for method, sampler in SAMPLERS.items():
            for name in sampler.settings:
                if name not in SAMPLERS[self.method].settings and getattr(self, name) != getattr(
                    GenerationConfig, name
                ):
                    raise ConfigError(
                        f"'{name}' applies only to method={method}, but method is '{self.method}'; "
                        f"remove '{name}' or set method={method}"
                    )
        if "" in self.stop_strings:
            raise ConfigError("stop_strings has an empty string, at which every text would end; remove it")

    def replace(self, settings: dict[str, Any]) -> GenerationConfig:
        """These settings with some of them changed; with another method, those of the old one get their defaults.

        Args:
            settings: dict, name -> new value.

        Raises:
            ConfigError: an unknown name, a value that does not fit, or settings of another method than the new one.

        Example:
            GenerationConfig(method="beam_search", beams=8).replace({"method": "greedy"})
        """
        base: Any = self
        if settings.get("method", self.method) != self.method:
            defaults = {name: getattr(GenerationConfig, name) for name in SAMPLERS[self.method].settings}
            base = dataclasses.replace(self, method="greedy", **defaults)
        return build(GenerationConfig, settings, base=base)
