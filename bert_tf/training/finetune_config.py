"""The settings of fine-tuning. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import config_for_token_table
from bert_tf.tasks.record import check_columns, check_task
from bert_tf.training.optimizer_config import AdamConfig, OptimizerConfig, check_accumulation


@dataclasses.dataclass(frozen=True)
class FinetuneDataConfig:
    """The labelled files: TSV, CSV, JSON lines or CoNLL.

    Attributes:
        train: the file that is trained on.
        dev: the file that chooses the best epoch.
        test: a file that the best epoch is measured on after training; None for none.
        columns: which columns of the files have which role; the roles are those of the kind of the task.
    """

    train: str = ""
    dev: str = ""
    test: str | None = None
    columns: dict = dataclasses.field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        """Name of a setting -> the file, of those that are given."""
        return {name: path for name, path in vars(self).items() if name != "columns" and path}


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
        dropout: of the encoder of `init_from`, on attention too. None: a published checkpoint keeps the rates that it
            was published with (0.1; none in ALBERT version 2 and xxlarge and in ModernBERT), a fine-tuned run keeps its
            own, and a run pretrained here gets 0.1, because a short pretraining goes without dropout and a small
            labelled set needs it.
        pretrained: False starts from random weights: the same model without its pretraining.
        layer_decay: the factor by which each layer learns slower than the layer above it; None: all learn alike.
            ELECTRA has 0.8 (small, base) and 0.9 (large), XLNet 0.75 (large, SQuAD).
        layer_decay_variant: "electra": multiplies the learning rate by layer_decay^(n + 2 - depth), with depth 0 for
            embeddings, i + 1 for layer i of n, n + 1 for the pooler and n + 2 for the head. "xlnet": multiplies the
            clipped gradients of layer i by layer_decay^(n - 1 - i), and leaves embeddings and head as they are; AdamW,
            which divides a gradient by its own size, hardly sees it.
        freeze: the part of the model that keeps its weights. "backbone": all but the head, a linear probe; 0: the
            embeddings; k: the embeddings and the k lowest layers; None: nothing.
        gradual_unfreezing: the first epoch trains the head and the pooler, each further one one layer more from the
            top, and then the embeddings (ULMFiT; Howard and Ruder 2018, section 3.3). With n layers the epoch n + 2 is
            the first that trains everything.
        lora_rank: trains LoRA factors of this rank beside frozen weights (Hu et al. 2021), and the head; None: no LoRA.
        lora_alpha: the factors count alpha / rank times; None for the rank itself.
        lora_layers: the names of the dense layers that get factors. None: "query" and "value", as section 4.2 of the
            paper; "query_key_value" where a family has one kernel for all three (ModernBERT).
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
    layer_decay: Annotated[float | None, Range(above=0, at_most=1)] = None
    layer_decay_variant: Literal["electra", "xlnet"] = "electra"
    freeze: Annotated[int, Range(at_least=0)] | Literal["backbone"] | None = None
    gradual_unfreezing: bool = False
    lora_rank: Annotated[int | None, Range(at_least=1)] = None
    lora_alpha: Annotated[float | None, Range(above=0)] = None
    lora_layers: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """A fine-tuning experiment, as in configs/finetune/*.yaml.

    The defaults are Devlin et al. 2019, appendix A.3, with bias correction and a longer warm-up,
    which make small data sets stable (Mosbach et al. 2021, section 6).

    Attributes:
        task: the task; see `bert_tf.tasks.config.TaskConfig`.
        data: the labelled files.
        init_from: the run directory or published checkpoint (also hf://owner/name) whose encoder and tokenizer are
            used.
        encoder: the `model` section of a new encoder with random weights above the token table of `init_from`, such as
            {"family": "bilstm", "hidden_size": 256} above word vectors; its tokenizer is that of `init_from`. Empty:
            the encoder of `init_from`. `train.freeze=0` keeps the table as it is.
        optimizer: the optimizer and the schedule of its learning rate.
        train: duration, batches, devices and seeds.
    """

    task: dict = dataclasses.field(default_factory=dict)
    data: FinetuneDataConfig = FinetuneDataConfig()
    init_from: str = ""
    encoder: dict = dataclasses.field(default_factory=dict)
    optimizer: OptimizerConfig = AdamConfig(learning_rate=2e-5, warmup_fraction=0.1, bias_correction=True)
    train: FinetuneTrainConfig = FinetuneTrainConfig()


def check_finetuning(config):
    """Rejects settings that are wrong for any data.

    Raises:
        ConfigError: names the key.
    """
    check(config)
    for key, value in (
        ("init_from", config.init_from),
        ("data.train", config.data.train),
        ("data.dev", config.data.dev),
    ):
        if not value:
            raise ConfigError(f"{key} must be given")
    check_accumulation(config.train)
    _check_recipe(config.train)
    _check_encoder(config)
    task = check_task(config.task)
    check_columns(task, config.data.columns)
    if getattr(task, "reinitialize_layers", 0) and (
        config.train.freeze == "backbone" or config.train.lora_rank is not None
    ):
        raise ConfigError(
            f"task.reinitialize_layers={task.reinitialize_layers} gives layers random weights, which a frozen backbone would "
            "keep; remove task.reinitialize_layers"
        )
    if task.frozen_features:
        _check_features(task, config)
    if task.tokens_per_batch:
        rows = max(1, task.tokens_per_batch // task.sequence_length)
        if rows < config.train.accumulation_steps:
            raise ConfigError(
                f"task.tokens_per_batch={task.tokens_per_batch} has {rows} rows of task.sequence_length="
                f"{task.sequence_length} tokens, fewer than train.accumulation_steps={config.train.accumulation_steps}"
            )


def _check_encoder(config):
    """Rejects what cannot be done with a new encoder."""
    if not config.encoder:
        return
    config_for_token_table(config.encoder, vocabulary_size=1, width=1)
    if config.train.dropout is not None:
        raise ConfigError(
            "train.dropout is for the encoder of init_from, and encoder describes a new one; set encoder.dropout"
        )
    kept = [key for key in ("freeze", "lora_rank") if getattr(config.train, key) not in (None, 0)]
    if kept:
        raise ConfigError(
            f"encoder gives layers random weights, which train.{kept[0]} would keep; remove train.{kept[0]}"
        )


def _check_features(task, config):
    """Rejects settings of how the layers are trained where `task.frozen_layers` keeps all of them."""
    name, train = f"task.frozen_layers.name={task.frozen_layers.name}", config.train
    given = {"encoder": bool(config.encoder), "train.freeze": train.freeze not in (None, "backbone")}
    given |= {f"train.{key}": getattr(train, key) for key in ("layer_decay", "gradual_unfreezing", "lora_rank")}
    for key, value in given.items():
        if value:
            raise ConfigError(f"{name} trains no layer of the model; remove {key}")


def _check_recipe(train):
    """Rejects settings of how the layers are trained that contradict each other."""
    if train.layer_decay is None and train.layer_decay_variant != "electra":
        raise ConfigError(
            "train.layer_decay_variant does nothing without train.layer_decay; set train.layer_decay, e.g. 0.75"
        )
    for key in ("lora_alpha", "lora_layers"):
        if train.lora_rank is None and getattr(train, key) is not None:
            raise ConfigError(f"train.{key} does nothing without train.lora_rank; set train.lora_rank, e.g. 8")
    if train.lora_layers == ():
        raise ConfigError("train.lora_layers is empty; name a layer, e.g. [query,value], or remove train.lora_rank")
    chosen = [key for key in ("freeze", "lora_rank") if getattr(train, key) is not None]
    whole = [key for key in chosen if key == "lora_rank" or train.freeze == "backbone"]
    if len(chosen) > 1:
        raise ConfigError("train.lora_rank freezes the whole backbone already; remove train.freeze")
    if whole and train.gradual_unfreezing:
        raise ConfigError(f"train.{whole[0]} freezes the whole backbone; remove it, or train.gradual_unfreezing")
    if train.freeze == "backbone" and train.layer_decay is not None:
        raise ConfigError(
            "train.freeze=backbone trains no layer that train.layer_decay could slow down; remove one of them"
        )
    if chosen and not train.pretrained:
        raise ConfigError(
            f"train.pretrained=false gives random weights, which train.{chosen[0]} would keep; remove one of them"
        )
