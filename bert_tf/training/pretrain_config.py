"""The settings of pretraining, and which of them contradict each other.

No TensorFlow is imported here, so that a wrong setting is refused at once.
"""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.models.section import build_config
from bert_tf.objectives.masked_lm_config import MaskedLMConfig
from bert_tf.objectives.objective import ObjectiveConfig
from bert_tf.training.optimizer_config import OptimizerConfig


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
    `accumulation_steps` micro-batches save memory, or with `parallel_accumulation` time on CPUs: see
    `TrainableModel.compile`.
    `precision` "auto", the default of the shipped files, is bfloat16 on TPUs, on GPUs that have it, and on
    CPUs where the products of the model are faster in it, else float32; config.yaml of the run has the one
    chosen, which a resume keeps. See `bert_tf.training.precision`.
    """

    steps: Annotated[int, Range(at_least=1, at_most=2**31 - 1)] = 1_000_000
    batch_size: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 256
    accumulation_steps: Annotated[int, Range(at_least=1)] = 1
    parallel_accumulation: bool = False
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    strategy: str = "auto"
    xla: bool | None = None
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
    """A pretraining experiment, as in configs/pretrain/*.yaml.

    Attributes:
        model: a `preset` with fields to change, or a `family` with all sizes; see `bert_tf.models.section`.
        data: the shards.
        objective: what the model learns to predict, and how its input is corrupted; `name` chooses, see
            `bert_tf.objectives`.
        optimizer: the optimizer and the schedule of its learning rate.
        train: how long, on what, and what is written down.
    """

    RENAMED: ClassVar[dict] = {
        "masking": "objective.masking",
        "permutation": "objective.permutation",
        "generator": "objective.generator",
    }

    model: dict = dataclasses.field(default_factory=lambda: {"preset": "bert_base"})
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=MaskedLMConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)


def check_pretraining(config):
    """Refuses settings that are wrong whatever the shards and the tokenizer are.

    Args:
        config: a `PretrainConfig`.

    Raises:
        ConfigError: a number out of its range, or settings that contradict each other; names the key.
    """
    check(config)
    model = build_config(config.model, vocabulary_size=1)  # the tokenizer's is not known yet
    config.objective.check_model(model)
    check_training(config.train)
    if config.data.service and config.data.shard_by != "examples":
        raise ConfigError(
            f"data.shard_by={config.data.shard_by} does not apply to a tf.data service; remove data.shard_by or data.service"
        )
    if not config.data.shards:
        raise ConfigError("data.shards must name the folder that 'bert-tf shards' wrote")


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
    if train.parallel_accumulation and train.accumulation_steps < 2:
        raise ConfigError("train.parallel_accumulation runs micro-batches at the same time: set train.accumulation_steps above 1")
