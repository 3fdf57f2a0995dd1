"""Pretraining on shards."""

import dataclasses

from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_backbone, build_config, describe
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.training import data_identity
from bert_tf.training.recipe import Recipe
from bert_tf.training.starting import initialize, initialize_embeddings
from tfrecords.reading.reader import ShardReader, shards_tokenizer
from tfrecords.shards.manifest import Manifest


class ShardsRecipe(Recipe):
    """An objective on a new model, trained on shards; see `PretrainConfig`.

    Args:
        config: `PretrainConfig`. Its sizes of the model, the length of its sequences and what the objective takes from
            the shards are written out in the attribute `config`.

    Attributes:
        objective: the record of the objective.
        shards_tokenizer, tokenizer: of the shards, and of the model.
        data: the `ShardReader`.

    Raises:
        DataError: shards that cannot be read.
        ConfigError: a model that cannot read the shards.
    """

    def __init__(self, config):
        self.objective = OBJECTIVES[config.objective.name]
        self.shards_tokenizer = shards_tokenizer(config.data.shards)
        self.data = ShardReader(config.data.shards, self.shards_tokenizer)
        self.tokenizer = self.objective.model_tokenizer(self.shards_tokenizer, config.objective)
        self.model_config = self.make_model_config(config)
        check_fit(config, self.model_config, self.data, self.tokenizer)
        length = self.data.sequence_length
        super().__init__(
            dataclasses.replace(
                config,
                model=describe(self.model_config),
                data=dataclasses.replace(config.data, sequence_length=length),
                objective=config.objective.for_shards(self.data.manifest.packing, length),
            )
        )

    def make_model_config(self, config):
        """The configuration of the model that the settings describe."""
        return build_config(config.model, self.tokenizer.vocabulary_size, self.tokenizer.pad_id)

    def identities(self):
        data = self.config.data
        shards = {"data.shards": (data.shards, data_identity.of_shards(self.data.manifest))}
        if data.eval_shards:
            manifest = Manifest.load(data.eval_shards)
            shards["data.eval_shards"] = (data.eval_shards, data_identity.of_shards(manifest))
        return shards

    def make_model(self):
        settings = self.config.objective
        backbone = build_backbone(self.model_config, pooler=settings.needs_pooler)
        return self.objective.model_class.from_settings(backbone, settings)

    def start(self, model, folder):
        train = self.config.train
        if train.init_from:
            initialize(model, self.tokenizer, open_source(train.init_from), fresh=train.init_fresh)
        if train.init_embeddings_from:
            initialize_embeddings(model, self.tokenizer, open_source(train.init_embeddings_from))


def check_fit(config, model_config, reader, tokenizer):
    """Refuses a model that cannot read the shards.

    Args:
        config: the `PretrainConfig`.
        model_config: the configuration of the backbone.
        reader: the `ShardReader`.
        tokenizer: of the model.

    Raises:
        ConfigError: names the setting.
    """
    length, vocabulary = reader.sequence_length, tokenizer.vocabulary_size
    if config.data.sequence_length not in (None, length):
        raise ConfigError(
            f"data.sequence_length={config.data.sequence_length}, but the shards hold {length} tokens a row"
        )
    positions = model_config.max_positions
    if length > positions:
        raise ConfigError(
            f"the shards hold sequences of {length} tokens, the model has {positions} positions; "
            "set model.max_positions, or write shards with a smaller sequence length"
        )
    if vocabulary > model_config.vocabulary_size:
        raise ConfigError(
            f"the tokenizer has {vocabulary} tokens, model.vocabulary_size is {model_config.vocabulary_size}"
        )
    segments, layout = getattr(model_config, "num_segments", None), tokenizer.layout
    used = 1 + max(layout.second_segment, layout.end_segment if layout.at_end else 0)
    if segments is not None and model_config.reads_segments and segments < used:
        raise ConfigError(
            f"the layout '{tokenizer.layout_name}' of the tokenizer has {used} segments, model.num_segments is {segments}; "
            f"set model.num_segments={used}"
        )
