"""ELECTRA's settings, a generator's, sizes and record. No Keras is imported."""

import dataclasses
from typing import ClassVar

from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Positions, Segments, StackConfig, Width, published_sizes
from bert_tf.models.task_heads import TaskHead
from bert_tf.types import Config


@dataclasses.dataclass(frozen=True)
class ElectraConfig(StackConfig):
    """The settings of an ELECTRA discriminator or generator: BERT's, with a width of the embeddings.

    Args:
        embedding_size: E, the width of the embedding tables; where it is not H a linear layer follows them.
            128 in ELECTRA-small; a generator has its discriminator's.
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        activation: google-research/electra computes GELU with the error function.
        initializer_range: as in `StackConfig`, except for the linear layer after the embeddings and the last
            layer of the discriminator's head, which use Glorot's initializer as google-research/electra does.
        others: as `StackConfig`.

    Example:
        ElectraConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32, embedding_size=8)
    """

    has_position_table: ClassVar[bool] = True

    embedding_size: Width = dataclasses.field(kw_only=True)
    activation: Activation = "gelu_erf"
    max_positions: Positions = 512
    num_segments: Segments = 2


def check_position_table(config: Config) -> None:
    """Refuses the configuration of a discriminator whose embeddings a generator cannot share.

    Raises:
        ConfigError: its family has no position table.
    """
    if not config.has_position_table:
        raise ConfigError(
            f"{type(config).__name__} has no position table for a generator to share; replaced token detection is for "
            "ELECTRA, BERT and the families with BERT's embeddings: set model.family=electra, or another objective.name"
        )


def generator_config(config: Config, size: float = 0.25) -> ElectraConfig:
    """The settings of the generator that belongs to a discriminator.

    `get_generator_config` of google-research/electra `run_pretraining.py`: narrower, with as many layers, one head
    for every 64 numbers and a feed-forward network four times as wide. (The released electra-small-generator is as
    wide as its discriminator: the preset `electra_small_generator`.)

    Args:
        config: of the discriminator: an `ElectraConfig`, or another family's with its fields.
        size: the generator's width as a fraction of the discriminator's: 1/4 for small and large, 1/3 for base.

    Returns:
        ElectraConfig, with the discriminator's `embedding_size`.

    Raises:
        ConfigError: `size` leaves no width, `num_heads` does not divide the width, or the family
            has no position table.
    """
    check_position_table(config)
    family_fields = {field.name for field in dataclasses.fields(config)}
    hidden_size = round(config.hidden_size * size)
    if hidden_size < 1:
        raise ConfigError(f"a generator of {size} of the width {config.hidden_size} has no width left")
    common = {f.name: getattr(config, f.name) for f in dataclasses.fields(ElectraConfig) if f.name in family_fields}
    # Where the discriminator's family has no such field (DistilBERT has no segments).
    default = {"embedding_size": config.hidden_size, "num_segments": 0}
    smaller = {"hidden_size": hidden_size, "num_heads": max(1, hidden_size // 64), "intermediate_size": 4 * hidden_size}
    return ElectraConfig(**(default | common | smaller))


def _size(num_layers, embedding_size, hidden_size):
    # All of google-research/electra, generators too, are uncased.
    return ElectraConfig(30_522, embedding_size=embedding_size, **published_sizes(num_layers, hidden_size))


def _checkpoints():
    from bert_tf.models.electra import checkpoints

    return {"hf": checkpoints.HF, "tf1": checkpoints.TF1, "keras_hub": checkpoints.HUB}


ELECTRA = Family(
    name="electra",
    config=ElectraConfig,
    model="bert_tf.models.electra.model:ElectraEncoder",
    sizes={
        "electra_small": Preset(_size(12, 128, 256), 13_483_008, 14_196_219),
        "electra_base": Preset(_size(12, 768, 768), 108_891_648, 119_386_427),
        "electra_large": Preset(_size(24, 1024, 1024), 334_092_288, 354_655_291),
        "electra_small_generator": Preset(_size(12, 128, 256), 13_483_008, 13_546_682),
        "electra_base_generator": Preset(_size(12, 768, 256), 33_511_168, 33_740_602),
        "electra_large_generator": Preset(_size(24, 1024, 256), 50_999_552, 51_295_290),
    },
    checkpoints=_checkpoints,
    objective="replaced_token_detection",
    # google-research/electra `finetune/classification/classification_tasks.py`: dropout and a linear layer on the first
    # vector; the kernel has TensorFlow's default initializer. Hugging Face's class has a dense layer before it.
    heads=lambda config: {"classification": TaskHead("pooled", initializer="glorot_uniform")},
)
