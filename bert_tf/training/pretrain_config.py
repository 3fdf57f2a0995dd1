"""The settings of pretraining, and which of them contradict each other.

No TensorFlow is imported here, so that a wrong setting is refused at once.
"""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, build, check, nearest
from bert_tf.errors import ConfigError
from bert_tf.models.configs import generator_config
from bert_tf.models.section import build_config
from bert_tf.training.optimizer_config import OptimizerConfig
from tfrecords.masking_config import MaskingConfig
from tfrecords.permutation_config import PermutationConfig
from tfrecords.xlnet import check_permutation, reuse_length


@dataclasses.dataclass(frozen=True)
class ObjectiveConfig:
    """What the model learns to predict.

    Attributes:
        name: "masked_lm"; "replaced_token_detection", ELECTRA's; "permutation_lm", XLNet's.
        pair_head: masked_lm only: the question about two segments; "auto" asks what the shards
            were packed for.
        span_boundary: masked_lm only: SpanBERT's second loss; needs `masking.unit: span`.
        generator_size: replaced_token_detection only: the generator's width as a share of the
            model's.
        discriminator_weight: replaced_token_detection only: the factor of the discriminator's loss.
        memory_length: permutation_lm only: tokens before a segment that it sees. The segments are
            set in `permutation`.
        reuse_length: permutation_lm only: the first so many tokens of a segment are remembered. None
            for what the shards ask for: half a segment of the format xlnet, else all of it.
    """

    name: Literal["masked_lm", "replaced_token_detection", "permutation_lm"] = "masked_lm"
    pair_head: Literal["auto", "none", "next_sentence", "sentence_order"] = "auto"
    span_boundary: bool = False
    generator_size: Annotated[float, Range(above=0, at_most=1)] = 0.25
    discriminator_weight: Annotated[float, Range(at_least=0)] = 50.0
    memory_length: Annotated[int, Range(at_least=0)] = 384
    reuse_length: Annotated[int | None, Range(at_least=1)] = None


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Where the examples come from.

    `sequence_length` is that of the shards; the run directory records it, for exports to use.

    `shard_by` is what several workers share: the "examples" of each global batch, which are then the
    same with any number of workers, or the "files" of each epoch, of which each worker reads its part
    alone; see `ShardReader.dataset`. `service` is the address of a tf.data service, "grpc://host:port",
    that reads and masks in place of the workers; see `tfrecords.service` for what that gives up.
    """

    shards: str = ""
    sequence_length: Annotated[int | None, Range(at_least=1)] = None
    eval_shards: str | None = None
    eval_batches: Annotated[int, Range(at_least=1)] = 50
    skip_corrupted: bool = False
    shard_by: Literal["examples", "files"] = "examples"
    service: str | None = None


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How long, on what, and what is written down.

    `init_from` is a run directory or a published checkpoint to start from; parts of the model that
    it has not, such as "masked_lm_head" or "pair_head", must be named in `init_fresh`.
    `accumulation_steps` micro-batches save memory. `remat` saves memory too: the backward pass computes each
    transformer layer again instead of keeping what is inside it. See `TrainableModel.compile`.
    `cpu_kernels` false computes every layer as Keras does, which is slower on CPUs: to find out whether a number
    comes from a kernel of `bert_tf.backend.cpu_kernels`.
    `precision` "auto", the default of the shipped files, is bfloat16 on TPUs, on GPUs that have it, and on
    CPUs where the products of the model are faster in it, else float32; config.yaml of the run has the one
    chosen, which a resume keeps. See `bert_tf.training.precision`.
    """

    steps: Annotated[int, Range(at_least=1, at_most=2**31 - 1)] = 1_000_000
    batch_size: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 256
    accumulation_steps: Annotated[int, Range(at_least=1)] = 1
    remat: bool = False
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    strategy: str = "auto"
    xla: bool | None = None
    cpu_kernels: bool = True
    steps_per_execution: Annotated[int, Range(at_least=1)] = 1
    seed: Annotated[int, Range(at_least=0, below=2**32)] = 0
    log_every: Annotated[int, Range(at_least=1)] = 100
    checkpoint_every: Annotated[int, Range(at_least=1)] = 1000
    keep_checkpoints: Annotated[int, Range(at_least=1)] = 2
    eval_every: Annotated[int, Range(at_least=1)] = 1000
    init_from: str | None = None
    init_fresh: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
    """A pretraining experiment, as in configs/pretrain/*.yaml."""

    model: dict = dataclasses.field(default_factory=lambda: {"preset": "bert_base"})
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    masking: MaskingConfig = dataclasses.field(default_factory=MaskingConfig)
    permutation: PermutationConfig = dataclasses.field(default_factory=PermutationConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)


#: The sections that configure corruptions.
SECTIONS = {"masking": MaskingConfig, "permutation": PermutationConfig}

#: What each objective reads: fields of `ObjectiveConfig`, and the section of what corrupts its batches.
SETTINGS = {
    "masked_lm": {"objective.pair_head", "objective.span_boundary", "masking"},
    "replaced_token_detection": {"objective.generator_size", "objective.discriminator_weight", "masking"},
    "permutation_lm": {"objective.memory_length", "objective.reuse_length", "permutation"},
}


def check_pretraining(config):
    """Refuses settings that are wrong whatever the shards and the model are.

    Args:
        config: a `PretrainConfig`.

    Raises:
        ConfigError: a number out of its range, settings that contradict each other, or that the
            chosen objective does not read; names the key.
    """
    check(config)
    model = build_config(config.model, vocabulary_size=1)  # the tokenizer's is not known yet
    if config.objective.name == "replaced_token_detection":
        generator_config(model, config.objective.generator_size)
    check_training(config.train)
    check_objective(config)
    if config.data.service and config.data.shard_by != "examples":
        raise ConfigError(
            f"data.shard_by={config.data.shard_by} does not apply to a tf.data service; remove data.shard_by or data.service"
        )
    if not config.data.shards:
        raise ConfigError("data.shards must name the folder that 'bert-tf shards' wrote")


def fit_rows(config, packing, sequence_length):
    """The objective's settings for the rows of the shards, `reuse_length` resolved.

    Args:
        config: a `PretrainConfig`.
        packing: dict, of the shards' manifest or `ShardsConfig.packing`.
        sequence_length: of the shards.

    Returns:
        `ObjectiveConfig`.

    Raises:
        ConfigError: an objective or a permutation that cannot learn from such rows; names the key.
    """
    objective, reused = config.objective, None
    if packing["format"] == "xlnet":
        if objective.name != "permutation_lm":
            raise ConfigError(
                f"objective.name={objective.name}, but rows of the format xlnet hold most of their text twice and are made "
                "for permutation_lm; set objective.name=permutation_lm, or write the shards in another format"
            )
        check_permutation(config.permutation, packing, sequence_length)
        reused = reuse_length(sequence_length, packing["segments"])
    if objective.reuse_length not in (None, reused):
        raise ConfigError(f"objective.reuse_length={objective.reuse_length}, but the shards ask for {reused}; leave it out")
    return dataclasses.replace(objective, reuse_length=reused)


def check_objective(config):
    """Refuses settings that the chosen objective does not read.

    Raises:
        ConfigError: names the setting and the objectives that read it.
    """
    chosen = config.objective.name
    default = PretrainConfig()
    for key in sorted(set().union(*SETTINGS.values()) - SETTINGS[chosen]):
        if _value(config, key) != _value(default, key):
            owners = " and ".join(name for name, keys in SETTINGS.items() if key in keys)
            raise ConfigError(f"'{key}' applies only to {owners}, but objective.name is '{chosen}'; remove '{key}'")


def corruption_config(objective, settings):
    """The settings of what corrupts the batches of an objective.

    Args:
        objective: its name.
        settings: dict, what stands in its section of a configuration, such as `masking`.

    Raises:
        ConfigError: no such objective or setting.
    """
    if objective not in SETTINGS:
        raise ConfigError(f"no objective '{objective}'{nearest(objective, SETTINGS)}")
    section = next(key for key in SETTINGS[objective] if key in SECTIONS)
    return build(SECTIONS[section], settings, section)


def _value(config, key):
    for name in key.split("."):
        config = getattr(config, name)
    return config


def check_training(train):
    """Refuses steps and batches that do not fit together.

    Raises:
        ConfigError: names the setting.
    """
    together = train.steps_per_execution
    for name in ("steps", "log_every", "checkpoint_every", "eval_every"):
        value = getattr(train, name)
        if value % together:
            raise ConfigError(f"train.{name}={value} must be a multiple of train.steps_per_execution={together}")
    if train.batch_size % train.accumulation_steps:
        raise ConfigError(
            f"train.batch_size={train.batch_size} cannot be cut into train.accumulation_steps="
            f"{train.accumulation_steps} equal parts"
        )
