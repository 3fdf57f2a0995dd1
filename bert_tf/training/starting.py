"""What training starts from: the weights of a run or of a published checkpoint, and new models beside them."""

import dataclasses

from absl import logging

from bert_tf import config as configuration
from bert_tf.checkpoints import OpenedModel
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import build_backbone, config_for_token_table, encoder_alone
from bert_tf.models.model_config import DROPOUT_RATES
from bert_tf.models.weights import by_path, part_of

#: Settings in which a pretraining may differ from what it starts from: of training and of heads alone.
_FREE = (*DROPOUT_RATES, "unroll", "initializer_range", "classifier_pooling", "skipped_id")


def trained_config(source, whole):
    """The configuration of the model of a source that a task is trained on: of T5 the encoder alone, unless `whole`.

    What is trained here reads the last token of a text, which may be the one that ends it, whatever a checkpoint says of
    its own classifiers.
    """
    config = source.config if whole else encoder_alone(source.config)
    return config if config.skipped_id is None else dataclasses.replace(config, skipped_id=None)


def new_config(source, section, whole=False):
    """The configuration of a new encoder above the token table of a source.

    Args:
        source: of `open_source`.
        section: `encoder` of a `FinetuneConfig`; empty for the configuration of the source itself.
        whole: of `trained_config`.

    Raises:
        ConfigError: as `build_config`; also a table of another width than the source's.
    """
    if not section:
        return trained_config(source, whole)
    width = int(build_backbone(source.config).embedding_table.shape[-1])
    return config_for_token_table(section, source.config.vocabulary_size, width, source.tokenizer.pad_id)


def with_dropout(config, rate):
    """A configuration with all its dropout rates, on attention too, set to `rate`; None leaves them."""
    if rate is None:
        return config
    rates = set(DROPOUT_RATES) & {field.name for field in dataclasses.fields(config)}
    return dataclasses.replace(config, **dict.fromkeys(rates, rate))


def copy_token_table(encoder, source, section):
    """Sets the token table of an encoder from that of a source; `section` is the settings of the encoder, for messages.

    Raises:
        ConfigError: the tables have different shapes.
    """
    table = OpenedModel(source).backbone.embedding_table
    if tuple(table.shape) != tuple(encoder.embedding_table.shape):
        raise ConfigError(
            f"the token table of {source.path} is {tuple(table.shape)}, that of the new encoder "
            f"{tuple(encoder.embedding_table.shape)}; set {section}.hidden_size, or {section}.embedding_size where the family "
            "has one, to the width of the table"
        )
    encoder.embedding_table.assign(table)


def fill_head(model, source):
    """Sets the variables of a task's head that a source holds: the layers of ModernBERT's that are pretrained.

    Args:
        model: of a `Task`.
        source: of `open_source`. If it does not hold all of them, they keep their random values.
    """
    variables = getattr(model, "pretrained_head", dict)()
    by_own_path = {variable.path: variable for variable in variables.values()}  # of a run of fine-tuning
    for named in (variables, by_own_path):
        if named and named.keys() <= source.paths:
            source.fill(named, partly=True)
            return
    if variables:
        logging.warning("%s has no pretrained layers of the head: they are randomly initialized", source.path)


def finetuning_dropout(source):
    """The default dropout rate for fine-tuning a source; None keeps its own rates.

    A published checkpoint (imported or not) and a fine-tuned run keep their own. A run that was pretrained
    here gets 0.1: a short pretraining goes without dropout, a small labelled set needs it.
    """
    pretrained_here = source.settings and source.task is None and "imported_from" not in source.settings
    return 0.1 if pretrained_here else None


def initialize(objective, tokenizer, source, fresh=()):
    """Starts a pretraining model from a run directory or a published checkpoint.

    Args:
        objective: a `PretrainingModel`; its variables are set.
        tokenizer: the tokenizer of the shards; its vocabulary must equal that of the source.
        source: of `open_source`.
        fresh: parts, such as "pair_head" or "masked_lm_head", that keep their random initial values
            if the source does not have them. Parts of it that the objective does not have are ignored.

    Raises:
        ConfigError: a setting of the encoder or of its masked LM head differs from that of the source.
        DataError: the weights do not fill the model, or it was trained on other tokens.
    """
    _check_vocabulary(source, tokenizer)
    known = configuration.to_dict(source.config)
    for name, value in configuration.to_dict(objective.backbone.config).items():
        if name not in _FREE and known.get(name) != value:
            raise ConfigError(
                f"model.{name} is {value!r}, but {source.path} has {known.get(name)!r}; set model.{name} to that value"
            )
    for name in ("head_activation", "head_epsilon") if "masked_lm_head" in source.parts else ():
        own, theirs = getattr(objective.settings, name, None), (source.objective or {}).get(name)
        if own != theirs and getattr(objective, "masked_lm_head", None) is not None:
            raise ConfigError(
                f"objective.{name} is {own!r}, but {source.path} has {theirs!r}; set objective.{name} to that value"
            )
    missing = sorted({part_of(name) for name in by_path(objective)} - source.parts - set(fresh))
    if missing:
        raise DataError(
            f"{source.path} has no {', '.join(missing)}; to initialize them randomly, list them in train.init_fresh"
        )
    source.fill(objective, partly=True, fresh=fresh)


def initialize_embeddings(objective, tokenizer, source):
    """Starts the token table of a pretraining model from another model's, such as word vectors.

    Args:
        objective: a `PretrainingModel`; the token table of its backbone is set.
        tokenizer: the tokenizer of the shards; its vocabulary must equal that of the source.
        source: of `open_source`.

    Raises:
        ConfigError, DataError: another vocabulary, or a table of another width.
    """
    _check_vocabulary(source, tokenizer)
    copy_token_table(objective.backbone, source, "model")


def _check_vocabulary(source, tokenizer):
    if source.tokenizer.vocabulary != tokenizer.vocabulary:
        raise DataError(
            f"{source.path} was trained on another vocabulary than that of the shards; write the shards with the tokenizer in "
            f"{source.path}"
        )
