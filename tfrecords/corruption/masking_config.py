"""The settings of masking. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class MaskingConfig:
    """How much is masked, and how.

    Attributes:
        rate: the fraction of a sequence's n candidates that are predicted, without replacement: exactly
            max(1, round(rate * n)), or as `rounding` says. The candidates are the tokens of the text.
            (google-research/bert counts [CLS] and [SEP] too although it never predicts them:
            one prediction more in about one sequence of three.)
        rounding: how rate * n becomes a whole number. "nearest": BERT, ALBERT, ELECTRA; at least 1.
            "up": SpanBERT (`math.ceil`: 77 of 510, where "nearest" takes 76). "random": up or down at
            random so that the mean is rate * n, and 0 in some short sequences; RoBERTa (fairseq's
            `int(rate * n + U)`).
        predict_unknown: whether [UNK] is a candidate, as in BERT, ALBERT, RoBERTa, ELECTRA and SpanBERT.
            Default False: [UNK] is no token of the text, and a model that predicts it learns where the
            vocabulary ends.
        predict_special: whether every token is a candidate, also [CLS], [SEP] and [UNK]: RoBERTa (fairseq
            masks <s> and </s>). Only with strategy "token".
        mask_token_rate: the fraction of the predicted tokens that become [MASK].
        random_token_rate: the fraction that become a random token; the rest stay as they are.
        random_tokens: where random tokens are drawn from. "uniform": all ids of the vocabulary that are
            neither special nor unused, equally likely (BERT). "corpus": tokens of the shards, each as likely
            as it is frequent, without special tokens: SpanBERT. (From a sample of about a million tokens, the
            same for all runs on the same shards.)
        max_predictions: P, the width of the prediction tensors and the most predictions in one sequence; None
            for ceil(rate * sequence_length), which is never exceeded: BERT's 20 at length 128.
        strategy: what is predicted together. Units (words, n-grams, spans) never contain a special token; which
            tokens begin a word is the tokenizer's `starts_word`.
            "token": each token for itself.
            "whole_word": all pieces of a word or none. A word that does not fit into what is left
                of the budget is passed over, so that at times a token or two less are predicted.
            "ngram": 1 to `max_ngram` whole words, n of them with a probability proportional to
                1 / n: 6/11, 3/11, 2/11 for up to 3. One that does not fit is passed over, where
                google-research/albert first tries its first words alone. The n-grams among which is drawn lie end to
                end, so that neighbours are masked together more often: runs of 1, 2, 3, 4 and more masked words are
                .472, .269, .192, .067 of all (ALBERT's code .513, .273, .174, .039).
            "span": 1 to `max_span` whole words, n of them with a probability proportional to
                (1 - span_p)^(n - 1): 3.797 on average. The last one drawn is cut to what is left of the
                budget, at the front or the back; the original cuts it at the back, even within a
                word. Spans that touch are one; the choice between [MASK], random and kept is made
                once for a span.
            What is passed over favours short units, here as in the originals. Measured: words of 1, 2, 3, 4
            pieces are masked at .165, .145, .133, .117 (BERT's code .173, .151, .136, .124); n-grams of 1, 2,
            3 words are .651, .233, .116 of those masked (ALBERT's code .644, .239, .117).
        max_ngram: "ngram" only: words in the longest.
        span_p: "span" only: the parameter p of the geometric distribution of lengths; larger ones make shorter spans.
        max_span: "span" only: the most words of a span.
        rare_token_exponent: a, where a candidate is drawn with a weight of count^-a, its count in the shards: 0 for all
            candidates equally likely, 0.7 for DistilBERT (`mlm_smoothing` in its train.py), which predicts rare tokens
            more often. Only with strategy "token". (The counts are those of a sample of about a million tokens. The
            original draws from all tokens of a batch, this from each row.)
        static_duplicates: after how many epochs the masks repeat; None for new masks in each epoch, which is
            better. For comparison with google-research/bert, whose dupe_factor (10) writes each example so
            many times, each with its own masks.

    Raises:
        ConfigError: a value out of range, or one that the strategy does not use.

    Example:
        from tfrecords import MaskingConfig

        print(MaskingConfig(strategy="whole_word").predictions(128))  # 20
    """

    rate: Annotated[float, Range(above=0, below=1)] = 0.15
    mask_token_rate: Annotated[float, Range(at_least=0, at_most=1)] = 0.8
    random_token_rate: Annotated[float, Range(at_least=0, at_most=1)] = 0.1
    random_tokens: Literal["uniform", "corpus"] = "uniform"
    rounding: Literal["nearest", "up", "random"] = "nearest"
    predict_unknown: bool = False
    predict_special: bool = False
    max_predictions: Annotated[int | None, Range(at_least=1)] = None
    strategy: Literal["token", "whole_word", "ngram", "span"] = "token"
    max_ngram: Annotated[int, Range(at_least=1, at_most=1000)] = 3
    span_p: Annotated[float, Range(above=0, below=1)] = 0.2
    max_span: Annotated[int, Range(at_least=1, at_most=1000)] = 10
    rare_token_exponent: Annotated[float, Range(at_least=0, at_most=10)] = 0.0
    static_duplicates: Annotated[int | None, Range(at_least=1)] = None

    def __post_init__(self):
        check_fields(self)
        if self.mask_token_rate + self.random_token_rate > 1 + 1e-9:
            raise ConfigError(
                f"mask_token_rate {self.mask_token_rate} and random_token_rate "
                f"{self.random_token_rate} must add up to at most 1"
            )
        if self.predict_special and self.strategy != "token":
            raise ConfigError(
                f"predict_special masks [CLS] and [SEP], which belong to no word, but strategy is {self.strategy}; "
                "leave predict_special out or set strategy to token"
            )
        if self.rare_token_exponent and (self.strategy != "token" or self.predict_unknown or self.predict_special):
            raise ConfigError(
                "rare_token_exponent weighs single tokens of the text; set it to 0, or strategy to token and "
                "predict_unknown and predict_special to false"
            )
        for name, strategy in (("max_ngram", "ngram"), ("span_p", "span"), ("max_span", "span")):
            if self.strategy != strategy and getattr(self, name) != getattr(MaskingConfig, name):
                raise ConfigError(
                    f"{name} applies only to strategy: {strategy}, but strategy is {self.strategy}; remove {name}"
                )

    def predictions(self, sequence_length):
        """P for sequences of `sequence_length` tokens."""
        if self.max_predictions is not None:
            return min(self.max_predictions, sequence_length)
        # The rounding error of a product such as 0.07 * 100 must not add a prediction.
        return max(1, math.ceil(self.rate * sequence_length - 1e-9))

    def budgets(self, sequence_length):
        """How many of 0, 1, ... `sequence_length` candidates are predicted.

        Returns:
            int32 [S + 1]; and float64 [S + 1], the probability of one more, 0 except for rounding "random".
        """
        exact = self.rate * np.arange(sequence_length + 1)
        if self.rounding == "random":
            whole = np.floor(exact + 1e-9)  # without the rounding error of a product
            more = np.maximum(exact - whole, 0)
        else:
            whole = np.ceil(exact - 1e-9) if self.rounding == "up" else np.round(exact)
            whole[1:] = np.maximum(whole[1:], 1)
            more = np.zeros_like(exact)
        most = self.predictions(sequence_length)
        return np.minimum(whole, most).astype(np.int32), np.where(whole < most, more, 0)

    @property
    def needs_corpus_tokens(self):
        """Whether the corruption depends on how frequent the tokens of the shards are."""
        return self.random_tokens == "corpus" or self.rare_token_exponent > 0

    @property
    def probabilities(self):
        """Of units of 1, 2, ... words, float64; None where a unit is a token or a word."""
        if self.strategy == "ngram":
            return ngram_probabilities(self.max_ngram)
        if self.strategy == "span":
            return span_probabilities(self.span_p, self.max_span)
        return None


def ngram_probabilities(longest):
    """Proportional to 1/n for n = 1 .. `longest` (Lan et al. 2019, section 4.2): float64 [N]."""
    weights = 1 / np.arange(1, longest + 1)
    return weights / weights.sum()


def span_probabilities(p, longest):
    """Geometric, p (1 - p)^(n - 1), cut off and renormalized (Joshi et al. 2019, section 3.1): float64 [N]."""
    weights = p * (1 - p) ** np.arange(longest)
    return weights / weights.sum()
