"""The settings of T5's denoising objectives. No TensorFlow is imported, as in `masking_config`."""

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError

#: The methods that draw noise: tokens or spans of which the input does not have all.
NOISY = ("span", "replace_spans", "bert", "mass", "drop")


@dataclasses.dataclass(frozen=True)
class DenoisingConfig:
    """How a text becomes an input and a target. The defaults are T5's.

    Raffel et al. 2020, section 3.3 and table 3; the names in parentheses are those of the gin files.

    Attributes:
        method: "span": random spans become a sentinel each, the target has the sentinels and what they stand for.
            "replace_spans": the same with tokens drawn one by one; neighbours share a sentinel (iid_15_u_u).
            "bert": tokens drawn one by one become <extra_id_0>, one of ten a random token, never a sentinel (t5's may be
            one); the target is the whole text (iid_15_r10s90_f).
            "mass": they become <extra_id_0>; the target is the whole text (iid_15_m_f).
            "drop": they are dropped; the target has them (iid_15_d_d).
            "deshuffle": all tokens are in random order; the target is the whole text.
            "prefix_lm": the text is cut at random; the target is its second part.
            "lm": the input is empty.
        rate: the fraction of tokens that are noise.
        mean_span: "span" only: the mean length of a span in tokens.
        input_length: tokens of an input, the token that ends it included. None for what the longest text needs; where
            that is random, for what is exceeded once in some million times. A longer one is truncated before that token.
        target_length: tokens of a target, as `input_length` of an input.

    Raises:
        ConfigError: a value out of its range, or a setting of another method.

    Example:
        DenoisingConfig().lengths(568)  # (512, 114)
        DenoisingConfig(method="drop", rate=0.25)
    """

    method: Literal["span", "replace_spans", "bert", "mass", "drop", "deshuffle", "prefix_lm", "lm"] = "span"
    rate: Annotated[float, Range(above=0, below=1)] = 0.15
    mean_span: Annotated[float, Range(at_least=1)] = 3.0
    input_length: Annotated[int | None, Range(at_least=2)] = None
    target_length: Annotated[int | None, Range(at_least=2)] = None

    def __post_init__(self):
        check_fields(self)
        if self.method != "span" and self.mean_span != 3.0:
            raise ConfigError(f"mean_span applies only to method=span, but method is '{self.method}'; remove mean_span")
        if self.method not in NOISY and self.rate != 0.15:
            raise ConfigError(f"rate applies only to {', '.join(NOISY)}, but method is '{self.method}'; remove rate")

    def noise(self, tokens):
        """(noise tokens, spans) of texts of so many tokens, int arrays: `random_spans_noise_mask` of t5.

        With the published settings it is the same; in 28 of 210 other combinations (a rate of .5, texts of a few tokens)
        the spans are not.

        Half is rounded to even. A text of one token has no noise.
        """
        tokens = np.asarray(tokens)
        noise = np.clip(
            np.round(tokens.astype(np.float32) * np.float32(self.rate)).astype(int), 1, np.maximum(tokens - 1, 1)
        )
        spans = np.maximum(np.round(noise.astype(np.float32) / np.float32(self.mean_span)).astype(int), 1)
        spans = np.minimum(spans, tokens - noise)
        return np.where(tokens > 1, noise, 0), np.where(tokens > 1, spans, 0)

    def sentinels(self, tokens):
        """How many sentinels texts of so many tokens need: exactly for "span", on average for "replace_spans"."""
        if self.method == "span":
            return int(self.noise(tokens)[1])
        if self.method == "replace_spans":
            return math.ceil(tokens * self.rate * (1 - self.rate))
        return 1 if self.method in ("bert", "mass") else 0

    def lengths(self, tokens):
        """(input, target) lengths of texts of at most so many tokens, the token that ends them included."""
        drawn, spans = tokens * self.rate, tokens * self.rate * (1 - self.rate)

        def at_most(mean):
            return min(math.ceil(mean + 6 * math.sqrt(tokens * self.rate)), tokens)

        if self.method == "span":
            noise, count = (int(x) for x in self.noise(tokens))
            needed = tokens - noise + count, noise + count
        else:
            needed = {
                "replace_spans": (tokens, at_most(drawn + spans)),
                "drop": (tokens, at_most(drawn)),
                "lm": (0, tokens),
            }.get(self.method, (tokens, tokens))
        return (self.input_length or needed[0] + 1, self.target_length or needed[1] + 1)

    def longest_text(self, input_length):
        """The most tokens of a text whose input has `input_length` tokens: 568 for T5's 512.

        `compute_input_and_target_lengths` of t5. The `sequence_length` of shards for it is one more where each text
        ends with a special token.
        """
        tokens = input_length - 1
        while dataclasses.replace(self, input_length=None).lengths(tokens + 1)[0] <= input_length:
            tokens += 1
            if tokens > 100 * input_length:
                raise ConfigError(f"method: {self.method} has inputs of {input_length} tokens from texts of any length")
        return tokens
