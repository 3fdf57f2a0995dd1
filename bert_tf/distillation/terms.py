"""The terms of a distillation's loss: their settings and the one list of them. No Keras is imported."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, build, check
from bert_tf.errors import ConfigError
from bert_tf.registry import Registry, resolve

Layers = tuple[Annotated[int, Range(at_least=0)], ...]


@dataclasses.dataclass(frozen=True)
class TermConfig:
    """The settings that every term has.

    Attributes:
        weight: the factor of the term in the total loss.

    Example:
        TermConfig(weight=0.5)
    """

    weight: Annotated[float, Range(above=0)] = 1.0


@dataclasses.dataclass(frozen=True)
class HardLabelsConfig(TermConfig):
    """The student's own loss: of the labels of the file, or of the masked tokens."""


@dataclasses.dataclass(frozen=True)
class HiddenCosineConfig(TermConfig):
    """1 - cos of the last hidden states, mean over tokens without padding (DistilBERT; Sanh et al. 2019, section 2)."""


@dataclasses.dataclass(frozen=True)
class SoftLabelsConfig(TermConfig):
    """Cross-entropy with the teacher's probabilities (Hinton et al. 2015, section 2; Turc et al. 2019, section 3).

    Attributes:
        temperature: T; both models' logits are divided by it.
        temperature_squared: whether the loss is multiplied by T squared, which keeps its gradients as large as those of
            hard labels. TinyBERT does not.
        divergence: subtracts the entropy of the teacher's probabilities: the Kullback-Leibler divergence of DistilBERT
            and patient distillation, with the same gradients, and 0 for a student that agrees.
        mean: over "predictions" (texts, words or masked tokens); or over predictions and "classes", as in the code of
            TinyBERT and of patient distillation, which makes the term smaller by the number of classes.
    """

    temperature: Annotated[float, Range(above=0)] = 1.0
    temperature_squared: bool = True
    divergence: bool = False
    mean: Literal["predictions", "classes"] = "predictions"


@dataclasses.dataclass(frozen=True)
class SquaredErrorConfig(TermConfig):
    """Squared error of the logits, or of the numbers of a regression (Tang et al. 2019, section 3.2).

    Attributes:
        temperature: T; both models' logits are divided by it.
        mean: over predictions and "classes", as PyTorch's MSELoss; or the sum over classes, mean over "predictions".
    """

    temperature: Annotated[float, Range(above=0)] = 1.0
    mean: Literal["predictions", "classes"] = "classes"


@dataclasses.dataclass(frozen=True)
class HiddenStatesConfig(TermConfig):
    """Squared error of hidden states through one projection (TinyBERT; Jiao et al. 2020, equations 8 and 9).

    Attributes:
        layers: for each layer of the student the teacher's, from 0; null for the last of every N / M layers. The
            embeddings are always compared, too.
    """

    layers: Layers | None = None


@dataclasses.dataclass(frozen=True)
class AttentionScoresConfig(TermConfig):
    """Squared error of the attention scores before the softmax (TinyBERT; Jiao et al. 2020, equation 7).

    Attributes:
        layers: as of `hidden_states`.
    """

    layers: Layers | None = None


@dataclasses.dataclass(frozen=True)
class MiniLMConfig(TermConfig):
    """Divergences of the last layer's attention and of the relations of its values (Wang et al. 2020, section 3).

    Attributes:
        teacher_layer: the teacher's layer, from 0; null for its last.
    """

    teacher_layer: Annotated[int | None, Range(at_least=0)] = None


@dataclasses.dataclass(frozen=True)
class MiniLM2Config(TermConfig):
    """Divergence of the relations between queries, keys and values (MiniLMv2; Wang et al. 2021, section 3).

    Attributes:
        teacher_layer: the teacher's layer, from 0; null for its last. The paper takes 21 of BERT-large's (from 1), 19
            of RoBERTa-large's.
        relation_heads: the number of heads into which the vectors of both models are cut again: 48, of large teachers
            64.
        query: the factor of the relation between queries.
        key: the factor of the relation between keys.
        value: the factor of the relation between values.
    """

    teacher_layer: Annotated[int | None, Range(at_least=0)] = None
    relation_heads: Annotated[int, Range(at_least=1)] = 48
    query: Annotated[float, Range(at_least=0)] = 1.0
    key: Annotated[float, Range(at_least=0)] = 1.0
    value: Annotated[float, Range(at_least=0)] = 1.0


@dataclasses.dataclass(frozen=True)
class PatientConfig(TermConfig):
    """Squared error of the normalized vectors of [CLS] of all layers but the last (Sun et al. 2019, section 3.2).

    Attributes:
        layers: the teacher's layers, from 0, for the student's layers but the last; or "skip": every k-th (2, 4, ... of
            12 for 6, counted from 1); or "last": those before the last (7, 8, ...).
    """

    layers: Layers | Literal["skip", "last"] = "skip"


@dataclasses.dataclass(frozen=True)
class ProgressiveConfig(TermConfig):
    """Feature maps and attention, one layer after the other (MobileBERT; Sun et al. 2020, sections 3.4 and 3.5).

    Attributes:
        phase_steps: the updates of each layer: `train.steps` divided by the student's layers.
        feature_maps: the factor of the squared error of normalized hidden states.
        attention: of the cross-entropy of the attention.
        mean: of the squared difference of the means of hidden states.
        variance: of the difference of their variances.
        layer_rate: the factor of the learning rate of the layer that is learned.
        earlier_rate: the same of the layers before it; 0 freezes them.
        layers: as of `hidden_states`.
    """

    phase_steps: Annotated[int, Range(at_least=1)] = 10_000
    feature_maps: Annotated[float, Range(at_least=0)] = 100.0
    attention: Annotated[float, Range(at_least=0)] = 1.0
    mean: Annotated[float, Range(at_least=0)] = 5000.0
    variance: Annotated[float, Range(at_least=0)] = 5.0
    layer_rate: Annotated[float, Range(above=0)] = 3.0
    earlier_rate: Annotated[float, Range(at_least=0)] = 0.3
    layers: Layers | None = None


@dataclasses.dataclass(frozen=True)
class Term:
    """The record of a term of the loss.

    Attributes:
        name: its key in `terms`.
        config: its settings, a subclass of `TermConfig`.
        loss: the class that computes it, or "module:Class"; None for the student's own loss on the labels. It is made with (settings, student's configuration, teacher's configuration).
        reads: "outputs" for the logits or numbers that are predicted; "internals" for what is inside of the models,
            which are then both computed in each step.

    Example:
        class SoftLabels:
            def __init__(self, settings, student, teacher):
                self.settings = settings

        Term("soft_labels", SoftLabelsConfig, loss=SoftLabels)
    """

    name: str
    config: type
    loss: type | str | None
    reads: str = "outputs"

    @property
    def loss_class(self):
        """`loss`, imported; None for none."""
        return resolve(self.loss)


#: Name -> `Term`.
TERMS = Registry(
    "term",
    "terms",
    [
        Term("hard_labels", HardLabelsConfig, None),
        Term("soft_labels", SoftLabelsConfig, "bert_tf.distillation.output_losses:SoftLabels"),
        Term("squared_error", SquaredErrorConfig, "bert_tf.distillation.output_losses:SquaredError"),
        Term("hidden_cosine", HiddenCosineConfig, "bert_tf.distillation.internal_losses:HiddenCosine", "internals"),
        Term("hidden_states", HiddenStatesConfig, "bert_tf.distillation.internal_losses:HiddenStates", "internals"),
        Term(
            "attention_scores",
            AttentionScoresConfig,
            "bert_tf.distillation.internal_losses:AttentionScores",
            "internals",
        ),
        Term("minilm", MiniLMConfig, "bert_tf.distillation.internal_losses:MiniLM", "internals"),
        Term("minilm2", MiniLM2Config, "bert_tf.distillation.internal_losses:MiniLM2", "internals"),
        Term("patient", PatientConfig, "bert_tf.distillation.internal_losses:Patient", "internals"),
        Term("progressive", ProgressiveConfig, "bert_tf.distillation.progressive:Progressive", "internals"),
    ],
)


def register_term(record):
    """Adds a `Term` to the list: its name is then a key of `terms`. Returns the record.

    Raises:
        ConfigError: another record has the name.
    """
    return TERMS.register(record)


def read_terms(mapping):
    """The settings of the terms in a section `terms`.

    Args:
        mapping: name -> the weight of the term, a mapping of its settings, or None for a term that is left out.

    Returns:
        dict from name to `TermConfig`, in the order of the section.

    Raises:
        ConfigError: no term, an unknown one, or a setting that is wrong; names the key.

    Example:
        terms = read_terms({"hard_labels": 0.5, "soft_labels": {"weight": 0.5, "temperature": 2}})
        terms["soft_labels"].temperature  # 2
    """
    mapping = {name: settings for name, settings in (mapping or {}).items() if settings is not None}
    if not mapping:
        raise ConfigError("terms is empty; name at least one term of the loss, e.g. terms.soft_labels=1")
    terms = {}
    for name, settings in mapping.items():
        config, where = TERMS[name].config, f"terms.{name}"
        if isinstance(settings, (int, float)) and not isinstance(settings, bool):
            settings = {"weight": settings}
        terms[name] = settings if isinstance(settings, TermConfig) else build(config, settings, where)
        check(terms[name], where)
    return terms


def read_internals(terms):
    """Whether one of the terms compares what is inside of the models."""
    return any(TERMS[name].reads == "internals" for name in terms)


def trains_head(terms):
    """Whether one of the terms trains the head of the student: all but those that compare what is inside of the models."""
    return any(TERMS[name].reads != "internals" for name in terms)


def reads_predictions(terms):
    """Whether one of the terms compares the teacher's predictions."""
    return any(TERMS[name].reads == "outputs" and TERMS[name].loss is not None for name in terms)
