"""The settings of pretraining, and which of them contradict each other.

No TensorFlow is imported here, so that a wrong setting is refused at once.
"""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config, family_of
from bert_tf.objectives.registry import check_backbone_structure
from bert_tf.objectives.settings import MaskedLMConfig, ObjectiveConfig
from bert_tf.training.optimizer_config import AdamConfig, OptimizerConfig
from bert_tf.training.train_config import BatchConfig


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
class TrainConfig(BatchConfig):
    """The duration, batches, devices and logging of pretraining.

    Attributes:
        steps: updates of the weights, from the start of the run; a resumed run does what is left.
        cpu_kernels: whether layers are computed by the library's own kernels on CPUs, which are faster. False computes
            each as Keras does: the same numbers but for rounding, to find out whether a kernel is at fault.
        steps_per_execution: updates per call of the compiled step; more saves overhead for small models. The other
            numbers of steps must be multiples of it.
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

    Raises:
        ConfigError: numbers of steps and batch sizes that contradict each other; weights from two places.
    """

    COMPILED: ClassVar[tuple[str, ...]] = (*BatchConfig.COMPILED, "steps_per_execution", "cpu_kernels")

    batch_size: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 256
    steps: Annotated[int, Range(at_least=1, at_most=2**31 - 1)] = 1_000_000
    cpu_kernels: bool = True
    steps_per_execution: Annotated[int, Range(at_least=1)] = 1
    log_every: Annotated[int, Range(at_least=1)] = 100
    checkpoint_every: Annotated[int, Range(at_least=1)] = 1000
    keep_checkpoints: Annotated[int, Range(at_least=1)] = 2
    eval_every: Annotated[int, Range(at_least=1)] = 1000
    init_from: str | None = None
    init_fresh: list[str] = dataclasses.field(default_factory=list)
    init_embeddings_from: str | None = None

    def __post_init__(self):
        super().__post_init__()
        together = max(self.steps_per_execution, 1)
        for name in ("steps", "log_every", "checkpoint_every", "eval_every"):
            if getattr(self, name) % together:
                raise ConfigError(f"{name}={getattr(self, name)} must be a multiple of steps_per_execution={together}")
        if self.init_from and self.init_embeddings_from:
            raise ConfigError("init_from has a token table, too; remove init_embeddings_from")
        if self.init_fresh and not self.init_from:
            raise ConfigError(
                "init_fresh names parts that init_from has none of, but init_from is not set: set it, or remove "
                "init_fresh (without a checkpoint every part starts from random weights)"
            )


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
    if not config.data.shards:
        raise ConfigError("data.shards must name the folder that 'bert-tf shards' wrote")
