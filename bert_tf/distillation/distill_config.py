"""The settings of distillation. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, check
from bert_tf.distillation.terms import read_internals, read_terms, trains_head
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config
from bert_tf.objectives.settings import MaskedLMConfig, ObjectiveConfig
from bert_tf.training.finetune_config import FinetuneConfig, FinetuneDataConfig, FinetuneTrainConfig, LayerDecayConfig
from bert_tf.training.pretrain_config import DataConfig, PretrainConfig


@dataclasses.dataclass(frozen=True)
class TeacherConfig:
    """The model that is learned from.

    Attributes:
        path: a fine-tuned run or a published fine-tuned model for a task; a run of pretraining or a published model for
            pretraining, with its masked LM head where its predictions are compared. Also hf://owner/name.

    Example:
        TeacherConfig(path="bert")
    """

    path: str = ""


@dataclasses.dataclass(frozen=True)
class TaskTeacherConfig(TeacherConfig):
    """The teacher of a task. (Pretraining keeps no outputs of its teacher: masks are new in each epoch.)

    Attributes:
        cache: the precision in which the run keeps the teacher's outputs for the training examples: "float16" halves the
            space; "float32" is exact.
        top_k: how many of the teacher's largest logits are kept of each prediction; the others count as probability 0.
            For tasks with many labels. null for all.

    Example:
        TaskTeacherConfig(path="sentiment", cache="float32")
    """

    cache: Literal["float16", "float32"] = "float16"
    top_k: Annotated[int | None, Range(at_least=1)] = None


@dataclasses.dataclass(frozen=True)
class StudentConfig:
    """The model that learns.

    Attributes:
        layers: the layers, from 0, of `init_from`, or else of the teacher, that are the initial weights of the
            student's layers; embeddings, pooler and masked LM head are copied, too. "spread": evenly from the first to
            the last, for 6 of 12 layers DistilBERT's 0, 2, 4, 7, 9, 11. null: random weights, or those of `init_from`.

    Example:
        StudentConfig(layers=(0, 2, 4))  # of the teacher, in a model of three layers

    Raises:
        ConfigError: no layer is named.
    """

    layers: tuple[Annotated[int, Range(at_least=0)], ...] | Literal["spread"] | None = None

    def __post_init__(self):
        if self.layers == ():
            raise ConfigError("layers is empty; name a layer, e.g. [0,2,4], or remove it")


@dataclasses.dataclass(frozen=True)
class TaskStudentConfig(StudentConfig):
    """The student of a task.

    Attributes:
        model: its sizes, as the section `model` of pretraining: a preset, or a family with all sizes. Empty: the model
            of `init_from`; or the teacher's sizes with as many layers as `layers` names.

    Example:
        TaskStudentConfig(model={"preset": "bert_mini"})
    """

    model: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class DistillDataConfig(FinetuneDataConfig):
    """The files of texts.

    Attributes:
        train: labelled examples that are trained on; None for none. Labels are read by the term `hard_labels` alone.
        dev: labelled examples that choose the best epoch. Terms that compare layers alone do not train the head of the
            task, and the last epoch is kept.
        unlabelled: further examples without labels, which only the teacher labels: a file as for `bert-tf predict`,
            such as a text a line; None for none.
    """

    train: str | None = None
    unlabelled: str | None = None


@dataclasses.dataclass(frozen=True)
class StudentLayerDecayConfig(LayerDecayConfig):
    """The whole student is trained, perhaps its lower layers slower."""

    @classmethod
    def choices(cls):
        return {"all": cls}


@dataclasses.dataclass(frozen=True)
class DistillTrainConfig(FinetuneTrainConfig):
    """The duration, batches, devices and seeds of the distillation of a task."""

    trainable: StudentLayerDecayConfig = StudentLayerDecayConfig()


@dataclasses.dataclass(frozen=True)
class DistillConfig(FinetuneConfig):
    """Distillation of a task, as in configs/distill/*.yaml: fine-tuning whose loss compares with a teacher.

    Attributes:
        task: settings that differ from the teacher's task; its kind and labels are the teacher's.
        data: the files.
        init_from: a pretrained model for the student to start from, or whose layers `student.layers` takes; None for
            none.
        teacher: the model that is learned from.
        student: the model that learns.
        terms: the terms of the loss, which are added: name -> weight, or -> a mapping with `weight` and the term's
            settings; null leaves a term of the recipe out.
        alone: whether the same student is also fine-tuned on the labels alone, with as many updates, to compare with.
        train: duration, batches, devices and seeds.

    Example:
        student = TaskStudentConfig(model={"preset": "bert_mini"})
        data = DistillDataConfig(unlabelled="texts.txt", dev="dev.tsv")
        DistillConfig(teacher=TaskTeacherConfig("sentiment"), student=student, data=data)
    """

    data: DistillDataConfig = DistillDataConfig()
    init_from: str | None = None
    train: DistillTrainConfig = DistillTrainConfig()
    teacher: TaskTeacherConfig = TaskTeacherConfig()
    student: TaskStudentConfig = TaskStudentConfig()
    terms: dict = dataclasses.field(default_factory=lambda: {"soft_labels": 1.0})
    alone: bool = False


@dataclasses.dataclass(frozen=True)
class DistillPretrainConfig(PretrainConfig):
    """Distillation in pretraining: masked LM on shards, whose loss also compares with a teacher.

    Attributes:
        model: the student: a preset, or a family with all sizes. Empty: the model of `train.init_from`; or the
            teacher's sizes with as many layers as `student.layers` names.
        data: the shards, written with the teacher's tokenizer.
        objective: how the input is corrupted, and the student's own loss, which the term `hard_labels` adds.
        teacher: the model that is learned from.
        student: which of the teacher's layers it starts from.
        terms: as for tasks.
        predictions: where the teacher's probabilities are compared: at the "masked" tokens, or at "all" tokens, as
            DistilBERT does, which takes more memory and time.

    Example:
        terms = {"soft_labels": {"weight": 5, "temperature": 2}, "hard_labels": 2, "hidden_cosine": 1}
        student = StudentConfig(layers=(0, 2, 4, 7, 9, 11))
        DistillPretrainConfig(teacher=TeacherConfig("bert"), student=student, terms=terms)
    """

    model: dict = dataclasses.field(default_factory=dict)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=MaskedLMConfig)
    teacher: TeacherConfig = TeacherConfig()
    student: StudentConfig = StudentConfig()
    terms: dict = dataclasses.field(default_factory=lambda: {"soft_labels": 1.0, "hard_labels": 1.0})
    predictions: Literal["masked", "all"] = "masked"


def check_distillation(config):
    """Refuses a `DistillConfig` that is wrong for any data.

    Raises:
        ConfigError: names the key.
    """
    check(config)
    terms = _check_terms(config)
    if not config.data.dev:
        raise ConfigError("data.dev must be given: it chooses the best epoch")
    if not config.data.train and not config.data.unlabelled:
        raise ConfigError("data.train or data.unlabelled must be given: the texts that the student learns from")
    if "hard_labels" in terms and not config.data.train:
        raise ConfigError("terms.hard_labels needs labels; set data.train, or remove the term")
    if config.teacher.top_k is not None and "squared_error" in terms:
        raise ConfigError("terms.squared_error compares all logits; remove teacher.top_k, or that term")
    if config.alone and not config.data.train:
        raise ConfigError("alone=true trains on labels alone; set data.train, or alone=false")
    if config.encoder:
        raise ConfigError("encoder does not apply to distillation; write its keys under student.model")
    if config.init_from and config.student.model and not config.student.layers:
        raise ConfigError(
            "student.model gives random weights, init_from those of another model; remove one of them, or name the "
            "layers that are copied in student.layers"
        )
    _check_student(config.student, "student.model", config.student.model, "init_from", config.init_from)


def check_distilled_pretraining(config):
    """Refuses a `DistillPretrainConfig` that is wrong for any shards.

    Raises:
        ConfigError: names the key.
    """
    check(config)
    _check_terms(config)
    if not config.data.shards:
        raise ConfigError("data.shards must name the folder that 'bert-tf shards' wrote")
    if config.objective.name != "masked_lm" or config.objective.span_boundary:
        raise ConfigError("pretraining is distilled by objective.name=masked_lm, without span_boundary")
    if config.train.init_from and config.student.layers:
        raise ConfigError("student.layers takes weights of the teacher, train.init_from those of another; remove one")
    _check_student(config.student, "model", config.model, "train.init_from", config.train.init_from)


def _check_terms(config):
    terms = read_terms(config.terms)
    if not config.teacher.path:
        raise ConfigError("teacher.path must be given: the run or published model that is learned from")
    if "progressive" in terms and (len(terms) > 1 or isinstance(config, DistillConfig)):
        raise ConfigError(
            "terms.progressive trains one layer at a time and nothing else, so it is the only term, and of pretraining: "
            "remove the other terms; a second run can train them, with train.init_from"
        )
    early = isinstance(config, DistillConfig) and config.train.early_stopping
    if early and not trains_head(terms):
        raise ConfigError("terms that compare layers alone do not improve the dev metric; remove train.early_stopping")
    if config.train.remat and read_internals(terms):
        raise ConfigError("terms that compare layers cannot see them under gradient checkpointing; remove train.remat")
    return terms


def _check_student(student, setting, model, init_setting, init_from):
    """`setting` names that of the section `model`, `init_setting` that of the model to start from."""
    if not (model or student.layers or init_from):
        raise ConfigError(
            f"there is no student: set {setting}, e.g. {setting}.preset=bert_mini, or student.layers, e.g. [0,2,4], or "
            f"{init_setting}, a pretrained model"
        )
    if model:
        build_config(model, vocabulary_size=1)  # the tokenizer's is not known yet
    elif student.layers == "spread":
        raise ConfigError(f"student.layers=spread needs the number of layers; set {setting}, or name the layers")
