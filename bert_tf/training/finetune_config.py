"""The settings of fine-tuning. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.tasks.record import check_task
from bert_tf.training.optimizer_config import AdamConfig, OptimizerConfig


@dataclasses.dataclass(frozen=True)
class FinetuneDataConfig:
    """The labelled files: TSV, CSV, JSON lines or CoNLL.

    Attributes:
        train: the file that is trained on.
        dev: the file that chooses the best epoch.
        test: a file that the best epoch is measured on after training; None for none.
    """

    train: str = ""
    dev: str = ""
    test: str | None = None


@dataclasses.dataclass(frozen=True)
class FinetuneTrainConfig:
    """The duration, batches, devices and seeds of fine-tuning.

    Attributes:
        epochs: passes over the training data.
        batch_size: examples of an update, over all replicas and micro-batches together.
        accumulation_steps: how many micro-batches a batch is cut into; saves memory, changes no number.
        remat: gradient checkpointing, as `train.remat` of pretraining; saves memory and costs time.
        precision: what the model computes in, as `train.precision` of pretraining.
        strategy: "one" device; "mirrored" on all GPUs of this machine (else all its CPU devices); "multi_worker": the
            cluster that TF_CONFIG describes; "tpu". "auto" takes a TPU, else a cluster, else all GPUs, else the CPU.
        xla: whether forward and backward pass are compiled by XLA. None for what pays: all of it on GPUs, small parts
            on CPUs. On TPUs everything always is.
        seed: of the new weights, the order of the examples and dropout.
        seeds: how many runs, with seed, seed + 1, ...; their mean and spread are reported.
        early_stopping: stop after so many epochs without a better dev metric; None for never. The best epoch is kept
            in either case.
        dropout: of the encoder, on attention too. None: a published checkpoint keeps the rates that it was published
            with (0.1; none in ALBERT version 2 and xxlarge and in ModernBERT), a fine-tuned run keeps its own, and a
            run pretrained here gets 0.1, because a short pretraining goes without dropout and a small labelled set
            needs it.
        pretrained: False starts from random weights: the same model without its pretraining.
    """

    epochs: Annotated[int, Range(at_least=1)] = 3
    batch_size: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 32
    accumulation_steps: Annotated[int, Range(at_least=1)] = 1
    remat: bool = False
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    strategy: str = "auto"
    xla: bool | None = None
    seed: Annotated[int, Range(at_least=0, below=2**32)] = 0
    seeds: Annotated[int, Range(at_least=1, at_most=1000)] = 1
    early_stopping: Annotated[int | None, Range(at_least=1)] = None
    dropout: Annotated[float | None, Range(at_least=0, below=1)] = None
    pretrained: bool = True


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """A fine-tuning experiment, as in configs/finetune/*.yaml.

    The defaults are Devlin et al. 2019, appendix A.3, with bias correction and a longer warm-up,
    which make small data sets stable (Mosbach et al. 2021, section 6).

    Attributes:
        task: the task; see `bert_tf.tasks.config.TaskConfig`.
        data: the labelled files.
        init_from: the run directory or published checkpoint (also hf://owner/name) whose encoder and tokenizer are used.
        optimizer: the optimizer and the schedule of its learning rate.
        train: duration, batches, devices and seeds.
    """

    task: dict = dataclasses.field(default_factory=dict)
    data: FinetuneDataConfig = FinetuneDataConfig()
    init_from: str = ""
    optimizer: OptimizerConfig = AdamConfig(learning_rate=2e-5, warmup_fraction=0.1, bias_correction=True)
    train: FinetuneTrainConfig = FinetuneTrainConfig()


def check_finetuning(config):
    """Rejects settings that are wrong for any data.

    Raises:
        ConfigError: names the key.
    """
    check(config)
    for key, value in (("init_from", config.init_from), ("data.train", config.data.train), ("data.dev", config.data.dev)):
        if not value:
            raise ConfigError(f"{key} must be given")
    if config.train.batch_size % config.train.accumulation_steps:
        raise ConfigError(
            f"train.batch_size={config.train.batch_size} cannot be cut into train.accumulation_steps="
            f"{config.train.accumulation_steps} equal parts"
        )
    task = check_task(config.task)
    if task.tokens_per_batch:
        rows = max(1, task.tokens_per_batch // task.sequence_length)
        if rows < config.train.accumulation_steps:
            raise ConfigError(
                f"task.tokens_per_batch={task.tokens_per_batch} has {rows} rows of task.sequence_length="
                f"{task.sequence_length} tokens, fewer than train.accumulation_steps={config.train.accumulation_steps}"
            )
