"""What a family of models is: one record. No Keras is imported."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.models.task_heads import PublishedHead
from bert_tf.registry import resolve
from bert_tf.types import Function


@dataclasses.dataclass(frozen=True)
class Preset:
    """One published model.

    Args:
        config: its configuration.
        encoder_parameters: embeddings, layers and pooler; XLNet without the summary layer, which
            was not pretrained.
        pretraining_parameters: with the heads it was pretrained with and, for ELECTRA's
            discriminators, the generator of 1/4 (base: 1/3) of the width; without the pooler
            where it was not pretrained (SpanBERT).

    Example:
        Preset(BertConfig(30_522, 128, 2, 2, 512), encoder_parameters=4_385_920, pretraining_parameters=4_433_468)
    """

    config: Any
    encoder_parameters: int
    pretraining_parameters: int


@dataclasses.dataclass(frozen=True)
class Maps:
    """How a family's checkpoints in one format name settings and weights.

    Args:
        config: a `ConfigMap`; None where the checkpoints come without a configuration.
        weights: a `WeightMap`.
        config_of_arrays: with a configuration: function from (array name -> array) to a dict of the settings that only
            the arrays tell; None where the configuration tells all.
        config_of_shapes: without a configuration: function from (array name -> shape) and "model" or
            "generator" to the configuration that the shapes tell, or None where there is no such model.
        renames: function from the configuration to {name of a layer in the file: its name in `weights`}, where these names
            depend on the sizes; None where they do not.
        marker: without a configuration: the name of an array that only this family's checkpoints have.
        heads: kind of task head -> `PublishedHead` of the fine-tuned models in this format.

    Example:
        Maps(
            ConfigMap(fields={"vocab_size": ("vocabulary_size", 100)}, model_type="small"),
            WeightMap(arrays={"emb.weight": "embeddings/token_embeddings"}),
        )
    """

    config: Any
    weights: Any
    config_of_arrays: Function | None = None
    config_of_shapes: Function | None = None
    renames: Function | None = None
    marker: str | None = None
    heads: Mapping[str, PublishedHead] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Family:
    """One family of models: all that the rest of the library has to know of it.

    Args:
        name: what `model.family` says in a configuration.
        config: the dataclass of its settings.
        model: the model class, or "module:Class", which is called with a configuration and its own arguments, such as
            `pooler`.
        sizes: published name -> `Preset`.
        checkpoints: format ("hf", "keras_hub", "tf1", "garden", "numpy", "bilm") -> `Maps`; or a function that returns this.
        objective: the name of the objective that its published models were pretrained with.
        pair_task: the task of their pair head, as `objective.pair_task` names it; None for no such head.
        structure: "encoder", "decoder" or "encoder_decoder": see `bert_tf.models.decoder` and `encoder_decoder`.
        heads: function from a configuration to {kind: `TaskHead`}, the heads that its published models were fine-tuned
            with where they are not BERT's; None for BERT's.
        encoder_alone: of an encoder-decoder: function from a configuration to that of the encoder without the decoder,
            on which tasks that write no text are fine-tuned; its variables have the same names. None for no such
            family.

    Example:
        @dataclasses.dataclass(frozen=True, kw_only=True)
        class SmallConfig(BertConfig):
            num_layers: int = 2

        register_family(Family(name="small", config=SmallConfig, model=BertEncoder))
        sizes = {"vocabulary_size": 100, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64}
        encoder = build_backbone(build_config({"family": "small"} | sizes))
    """

    name: str
    config: type
    model: type | str
    sizes: Mapping[str, Preset] = dataclasses.field(default_factory=dict)
    checkpoints: Mapping[str, Maps] | Function = dataclasses.field(default_factory=dict)
    objective: str = "masked_lm"
    pair_task: str | None = None
    structure: str = "encoder"
    heads: Function | None = None
    encoder_alone: Function | None = None

    def model_class(self) -> type:
        """The model class."""
        return resolve(self.model)

    def maps(self, format: str) -> Any:
        """The `Maps` of its checkpoints in `format`; None where it has none."""
        return self.formats().get(format)

    def formats(self) -> Mapping[str, Maps]:
        """Format -> `Maps` of all its checkpoints."""
        return self.checkpoints() if callable(self.checkpoints) else self.checkpoints
