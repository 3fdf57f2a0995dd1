"""The settings of permutation language modelling. No TensorFlow is imported, as in `masking_config`."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class PermutationConfig:
    """How much is predicted, and how far the random order reaches. The defaults are XLNet's.

    Attributes:
        alpha: of how many tokens `beta` are predicted; with `beta` 1 one of six ("K = 6" in the paper).
        beta: how many of each `alpha` tokens are predicted, as spans.
        max_ngram: the most tokens of a predicted span; n tokens with probability proportional
            to 1 / n.
        permutation_size: tokens are put in random order within windows of this many; the windows follow each
            other in the order of the text. A divisor of the segment. With half a segment, the published 256 of
            512, the order is the original's. With less it is not: here the context of a window is seen from
            that window and the later ones, in the original (`_local_perm`, whose context has rank -1 throughout
            the half) also from the earlier windows of the half.
        segments: how many segments a row is cut into, each with its own predictions; `PermutationLM` runs them
            one after the other, with memory. The original's segments have 512 tokens.
        bidirectional: every second row runs backwards, so that memory holds what comes after; an
            example changes its direction every epoch.
        predict_special: whether every token except <sep>, <cls> and padding may be predicted, as in the
            original: also <unk>, and <eod> between documents. Default False: text alone.
        max_predictions: P, the most predictions of a row, all segments together; None for
            round(beta / alpha of a segment) for each: 85 for 512 tokens.

    Raises:
        ConfigError: a value out of range; `bidirectional` without a second segment.

    Example:
        from tfrecords import PermutationConfig

        print(PermutationConfig(segments=2).predictions(1024))  # 170
    """

    alpha: Annotated[int, Range(at_least=1)] = 6
    beta: Annotated[int, Range(at_least=1)] = 1
    max_ngram: Annotated[int, Range(at_least=1, at_most=1000)] = 5
    permutation_size: Annotated[int, Range(at_least=1)] = 256
    segments: Annotated[int, Range(at_least=1)] = 2
    bidirectional: bool = True
    predict_special: bool = False
    max_predictions: Annotated[int | None, Range(at_least=1)] = None

    def __post_init__(self):
        check_fields(self)
        if self.beta >= self.alpha:
            raise ConfigError(f"beta={self.beta} of each alpha={self.alpha} tokens would leave none to predict from")
        if self.max_predictions is not None and self.max_predictions < self.segments:
            raise ConfigError(
                f"max_predictions={self.max_predictions} leaves none for some of {self.segments} segments"
            )
        if self.bidirectional and self.segments == 1:
            raise ConfigError(
                "bidirectional rows differ from others in what their memory holds, and with segments=1 "
                "there is none; set bidirectional to false or segments to 2"
            )

    def window(self, sequence_length):
        """How many tokens are put in random order together; ConfigError where they do not divide a row."""
        if sequence_length % self.segments:
            raise ConfigError(f"{sequence_length} tokens cannot be cut into {self.segments} equal segments")
        segment = sequence_length // self.segments
        window = min(self.permutation_size, segment)
        if segment % window:
            raise ConfigError(f"permutation_size={window} does not divide segments of {segment} tokens")
        return window

    def quotas(self, sequence_length):
        """The most predictions of each window of a row: list of int."""
        segment, window = sequence_length // self.segments, self.window(sequence_length)
        if self.max_predictions is None:
            total = max(1, round(segment * self.beta / self.alpha))
        else:
            total = self.max_predictions // self.segments
        windows = segment // window
        # As the original halves 85: 43 and 42.
        return [total // windows + (i < total % windows) for i in range(windows)] * self.segments

    def predictions(self, sequence_length):
        """P for rows of `sequence_length` tokens."""
        return sum(self.quotas(sequence_length))
