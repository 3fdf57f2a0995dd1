"""The settings of fine-tuning. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import config_for_token_table
from bert_tf.tasks.record import check_columns, check_task
from bert_tf.training.optimizer_config import AdamConfig, OptimizerConfig
from bert_tf.training.train_config import BatchConfig


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
class TrainableConfig:
    """Which weights are trained, and how fast. `name` chooses them, and the class with the other settings.

    Attributes:
        name: "all": the whole model. "head": the head alone, a linear probe; a pooler that `init_from` does not have is
            trained, too. "lora": LoRA factors beside the frozen weights of the encoder (Hu et al. 2021), and the head.
    """

    CHOSEN_BY: ClassVar[str] = "name"
    #: What the classes below do not have.
    layer_decay: ClassVar = None
    freeze: ClassVar = None
    gradual_unfreezing: ClassVar = False

    name: str = "all"

    @classmethod
    def choices(cls):
        """Name -> settings of every choice, for `bert_tf.config.build`."""
        return {"all": AllTrainableConfig, "head": HeadTrainableConfig, "lora": LoraTrainableConfig}

    @property
    def frozen_by(self):
        """The setting that keeps weights in all epochs; None where every weight is trained."""
        if self.name != "all":
            return f"train.trainable.name={self.name}"
        return None if self.freeze is None else f"train.trainable.freeze={self.freeze}"


@dataclasses.dataclass(frozen=True)
class HeadTrainableConfig(TrainableConfig):
    """The head alone is trained."""

    name: str = "head"


@dataclasses.dataclass(frozen=True)
class LayerDecayConfig(TrainableConfig):
    """The whole model is trained, perhaps the lower layers slower.

    Attributes:
        layer_decay: the factor by which each layer learns slower than the layer above it; None: all learn alike.
            ELECTRA has 0.8 (small, base) and 0.9 (large), XLNet 0.75 (large, SQuAD).
        layer_decay_variant: "electra": multiplies the learning rate by layer_decay^(n + 2 - depth), with depth 0 for
            embeddings, i + 1 for layer i of n, n + 1 for the pooler and n + 2 for the head. "xlnet": multiplies the
            clipped gradients of layer i by layer_decay^(n - 1 - i), and leaves embeddings and head as they are; AdamW,
            which divides a gradient by its own size, hardly sees it.
    """

    layer_decay: Annotated[float | None, Range(above=0, at_most=1)] = None
    layer_decay_variant: Literal["electra", "xlnet"] = "electra"

    def __post_init__(self):
        if self.layer_decay is None and self.layer_decay_variant != "electra":
            raise ConfigError("layer_decay_variant does nothing without layer_decay; set layer_decay, e.g. 0.75")


@dataclasses.dataclass(frozen=True)
class AllTrainableConfig(LayerDecayConfig):
    """The whole model is trained, but for layers that are frozen.

    Attributes:
        freeze: 0 keeps the embeddings, k the embeddings and the k lowest layers; None: nothing.
        gradual_unfreezing: the first epoch trains the head and the pooler, each further one one layer more from the
            top, and then the embeddings (ULMFiT; Howard and Ruder 2018, section 3.3). With n layers the epoch n + 2 is
            the first that trains everything.
    """

    freeze: Annotated[int | None, Range(at_least=0)] = None
    gradual_unfreezing: bool = False


@dataclasses.dataclass(frozen=True)
class LoraTrainableConfig(LayerDecayConfig):
    """LoRA factors and the head are trained.

    Attributes:
        rank: of the factors.
        alpha: the factors count alpha / rank times; None for the rank itself.
        layers: the names of the dense layers that get factors. None: "query" and "value", as section 4.2 of the paper;
            "query_key_value" where a family has one kernel for all three (ModernBERT).
    """

    name: str = "lora"
    rank: Annotated[int, Range(at_least=1)] = 8
    alpha: Annotated[float | None, Range(above=0)] = None
    layers: tuple[str, ...] | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.layers == ():
            raise ConfigError("layers is empty; name a layer, e.g. [query,value], or remove layers")


@dataclasses.dataclass(frozen=True)
class FinetuneTrainConfig(BatchConfig):
    """The duration, batches, devices and seeds of fine-tuning.

    Attributes:
        epochs: passes over the training data.
        seeds: how many runs, with seed, seed + 1, ...; their mean and spread are reported.
        early_stopping: stop after so many epochs without a better dev metric; None for never. The best epoch is kept
            in either case.
        dropout: of the encoder of `init_from`, on attention too. None: a published checkpoint keeps the rates that it
            was published with (0.1; none in ALBERT version 2 and xxlarge and in ModernBERT), a fine-tuned run keeps its
            own, and a run pretrained here gets 0.1, because a short pretraining goes without dropout and a small
            labelled set needs it.
        pretrained: False starts from random weights: the same model without its pretraining.
        trainable: which weights are trained, and how fast.
    """

    epochs: Annotated[int, Range(at_least=1)] = 3
    seeds: Annotated[int, Range(at_least=1, at_most=1000)] = 1
    early_stopping: Annotated[int | None, Range(at_least=1)] = None
    dropout: Annotated[float | None, Range(at_least=0, below=1)] = None
    pretrained: bool = True
    trainable: TrainableConfig = AllTrainableConfig()


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
            the encoder of `init_from`. `train.trainable.freeze=0` keeps the table as it is.
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
    _check_encoder(config)
    task = check_task(config.task)
    check_columns(task, config.data.columns)
    _check_frozen(config, task)
    if task.tokens_per_batch:
        rows = max(1, task.tokens_per_batch // task.sequence_length)
        if rows < config.train.accumulation_steps:
            raise ConfigError(
                f"task.tokens_per_batch={task.tokens_per_batch} has {rows} rows of task.sequence_length="
                f"{task.sequence_length} tokens, fewer than train.accumulation_steps={config.train.accumulation_steps}"
            )


def _check_encoder(config):
    """Rejects what cannot be done with a new encoder."""
    if config.encoder:
        config_for_token_table(config.encoder, vocabulary_size=1, width=1)
        if config.train.dropout is not None:
            raise ConfigError(
                "train.dropout is for the encoder of init_from, and encoder describes a new one; set encoder.dropout"
            )


def _check_frozen(config, task):
    """Rejects settings that keep random weights, and those of layers that `task.frozen_layers` keeps."""
    trainable = config.train.trainable
    random = {
        "encoder": config.encoder and trainable.freeze != 0,
        "task.reinitialize_layers": trainable.name != "all" and getattr(task, "reinitialize_layers", 0),
        "train.pretrained=false": not config.train.pretrained,
    }
    for setting, is_random in random.items():
        if is_random and trainable.frozen_by:
            raise ConfigError(
                f"{setting} gives random weights, which {trainable.frozen_by} would keep; remove one of them"
            )
    if task.frozen_features:
        given = {"encoder": config.encoder}
        given["train.trainable"] = trainable not in (AllTrainableConfig(), HeadTrainableConfig())
        for setting, is_given in given.items():
            if is_given:
                name = task.frozen_layers.name
                raise ConfigError(f"task.frozen_layers.name={name} trains no layer of the model; remove {setting}")
