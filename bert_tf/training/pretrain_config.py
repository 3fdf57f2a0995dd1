"""The settings of pretraining, and which of them contradict each other.

No TensorFlow is imported here, so that a wrong setting is refused at once.
"""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config, family_of
from bert_tf.objectives.masked_lm_config import MaskedLMConfig
from bert_tf.objectives.objective import ObjectiveConfig, check_backbone_structure
from bert_tf.training.optimizer_config import AdamConfig, OptimizerConfig, check_accumulation


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Where the examples come from.

    Attributes:
        shards: the folder that `bert-tf shards` wrote.
        sequence_length: tokens of a sequence. Leave it out: it is read from the shards, and recorded in the run for
            exports to use; another length than that of the shards is refused.
        eval_shards: a folder of held-out shards, packed in the same way; None for no evaluation in training.
        eval_batches: how many batches of `train.batch_size` an evaluation reads at most; they are the same ones, with
            the same masks, each time.
    """

    shards: str = ""
    sequence_length: Annotated[int | None, Range(at_least=1)] = None
    eval_shards: str | None = None
    eval_batches: Annotated[int, Range(at_least=1)] = 50


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The duration, batches, devices and logging of pretraining.

    Attributes:
        steps: updates of the weights, from the start of the run; a resumed run does what is left.
        batch_size: sequences of an update, over all replicas and micro-batches together.
        accumulation_steps: how many micro-batches a batch is cut into; their gradients are summed before the update.
            Saves memory, changes no number.
        remat: gradient checkpointing: the backward pass computes each transformer layer again instead of keeping what
            is inside it. Saves memory and costs time; the gradients are the same. LSTMs have no such layers.
        precision: what the model computes in; the weights are float32 in any case. "auto" is bfloat16 on TPUs, on GPUs
            that have it, and on CPUs where the products of this model are faster in it, else float32; config.yaml of
            the run records the choice, and a resumed run keeps it. See `bert_tf.training.precision`.
        strategy: "one" device; "mirrored" on all GPUs of this machine (else all its CPU devices); "multi_worker": the
            cluster that TF_CONFIG describes; "tpu". "auto" takes a TPU, else a cluster, else all GPUs, else the CPU.
        xla: whether forward and backward pass are compiled by XLA. None for what pays: all of it on GPUs, small parts
            on CPUs. On TPUs everything always is.
        cpu_kernels: whether layers are computed by the library's own kernels on CPUs, which are faster. False computes
            each as Keras does: the same numbers but for rounding, to find out whether a kernel is at fault.
        steps_per_execution: updates per call of the compiled step; more saves overhead for small models. The other
            numbers of steps must be multiples of it.
        seed: of the initial weights, the order of reading, masks and dropout.
        log_every: steps between two lines of metrics.jsonl, which hold means over these steps.
        checkpoint_every: steps between two checkpoints.
        keep_checkpoints: how many of the newest checkpoints are kept; at least 2 are, whatever is set. 'bert-tf
            convert --average N' needs N.
        eval_every: steps between two evaluations on `data.eval_shards`.
        init_from: a run directory or published checkpoint (also hf://owner/name) to start from; None for random
            weights.
        init_fresh: the parts that start from random weights although `init_from` is set, because it has none of them:
            for example ["masked_lm_head", "pair_head"].
        init_embeddings_from: a run, a published checkpoint or a file of word vectors whose token table the model starts
            with; all else is random. It must have the vocabulary of the shards. None for a random table.
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
    init_embeddings_from: str | None = None


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
    """A pretraining experiment, as in configs/pretrain/*.yaml.

    Attributes:
        model: a `preset` with fields to change, or a `family` with all sizes; see `bert_tf.models.families`.
        data: the shards.
        objective: what the model learns to predict, and how its input is corrupted; `name` chooses, see
            `bert_tf.objectives`.
        optimizer: the optimizer and the schedule of its learning rate.
        train: duration, batches, devices and logging.
    """

    model: dict = dataclasses.field(default_factory=lambda: {"preset": "bert_base"})
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=MaskedLMConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=AdamConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)


def check_pretraining(config):
    """Rejects settings that are wrong for any shards and tokenizer.

    Args:
        config: a `PretrainConfig`.

    Raises:
        ConfigError: a number out of its range, or settings that contradict each other; names the key.
    """
    check(config)
    model = build_config(config.model, vocabulary_size=1)  # the tokenizer's is not known yet
    check_backbone_structure(config.objective.name, family_of(model).structure, f"the family {family_of(model).name}")
    config.objective.check_model(model)
    check_training(config.train)
    if not config.data.shards:
        raise ConfigError("data.shards must name the folder that 'bert-tf shards' wrote")


def check_training(train):
    """Rejects numbers of steps and batch sizes that contradict each other.

    Raises:
        ConfigError: names the setting.
    """
    together = train.steps_per_execution
    for name in ("steps", "log_every", "checkpoint_every", "eval_every"):
        value = getattr(train, name)
        if value % together:
            raise ConfigError(f"train.{name}={value} must be a multiple of train.steps_per_execution={together}")
    if train.init_from and train.init_embeddings_from:
        raise ConfigError("train.init_from has a token table, too; remove train.init_embeddings_from")
    if train.init_fresh and not train.init_from:
        raise ConfigError(
            "train.init_fresh names parts that train.init_from has none of, but train.init_from is not set: set it, or "
            "remove train.init_fresh (without a checkpoint every part starts from random weights)"
        )
    check_accumulation(train)
