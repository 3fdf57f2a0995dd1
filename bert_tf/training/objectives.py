"""Which data go with which objective: the rows that join `tfrecords`, `objectives` and `models`.

An objective is one row: how its model is built around an encoder, what corrupts its batches, which
of its numbers a guess by word frequencies can be compared with, and what it refuses.
"""

import dataclasses
from collections.abc import Callable

from bert_tf.errors import ConfigError
from bert_tf.models.building import build_encoder
from bert_tf.models.configs import generator_config
from bert_tf.models.electra import make_generator
from bert_tf.objectives import MaskedLM, PermutationLM, ReplacedTokenDetection
from tfrecords.corruption.masking import MaskedLMCorruption
from tfrecords.corruption.permutation import PermutationCorruption
from tfrecords.corruption.replaced_tokens import ReplacedTokenCorruption


@dataclasses.dataclass(frozen=True)
class Row:
    """One objective.

    Attributes:
        build: function(config, model_config, pair_task) -> the objective. `config` is the whole
            experiment, `pair_task` what the shards were packed for.
        corruption: the class of what corrupts its batches, called with (tokenizer, its config).
        section: the section of the experiment that is the corruption's config.
        headline: its metrics that a unigram guess is comparable with -> names in `baselines.unigram`.
    """

    build: Callable
    corruption: type
    section: str
    headline: dict


def _masked_lm(config, model_config, pair_task):
    question, spans = config.objective.pair_head, config.objective.span_boundary
    question = pair_task if question == "auto" else question
    if question not in ("none", pair_task):
        raise ConfigError(
            f"objective.pair_head={question}, but the shards were packed with pair: {pair_task}; "
            f"write them with --pair {question}, or leave pair_head at auto"
        )
    if spans and config.masking.strategy != "span":
        raise ConfigError(
            f"objective.span_boundary predicts from the borders of spans, and masking.strategy is {config.masking.strategy}; "
            "set masking.strategy=span"
        )
    encoder = build_encoder(model_config, pooler=question != "none")
    return MaskedLM(encoder, pair_head=None if question == "none" else question, span_boundary=spans)


def _replaced_token_detection(config, model_config, pair_task):
    discriminator = build_encoder(model_config, pooler=False)
    size, weight = config.objective.generator_size, config.objective.discriminator_weight
    generator = make_generator(discriminator, generator_config(model_config, size))
    return ReplacedTokenDetection(discriminator, generator, weight)


def _permutation_lm(config, model_config, pair_task):
    encoder = build_encoder(model_config, pooler=False)
    objective = config.objective
    return PermutationLM(encoder, config.permutation.segments, objective.memory_length, objective.reuse_length)


OBJECTIVES = {
    "masked_lm": Row(
        build=_masked_lm,
        corruption=MaskedLMCorruption,
        section="masking",
        headline={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
    ),
    "replaced_token_detection": Row(
        build=_replaced_token_detection,
        corruption=ReplacedTokenCorruption,
        section="masking",
        headline={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
    ),
    "permutation_lm": Row(
        build=_permutation_lm,
        corruption=PermutationCorruption,
        section="permutation",
        headline={"permutation_lm_loss": "masked_lm_loss", "permutation_lm_accuracy": "masked_lm_accuracy"},
    ),
}


def make_corruption(config, tokenizer, reader):
    """What corrupts the batches of an experiment.

    Args:
        config: the experiment.
        tokenizer: the shards'.
        reader: the `ShardReader` of the training shards.
    """
    row = OBJECTIVES[config.objective.name]
    return row.corruption.of_shards(reader, tokenizer, getattr(config, row.section))


def encoder_of(objective):
    """The encoder that is wanted in the end."""
    return objective.discriminator if isinstance(objective, ReplacedTokenDetection) else objective.encoder
