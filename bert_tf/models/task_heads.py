"""The heads that families are fine-tuned with: which layers stand between a model and the outputs of a task.

No Keras is imported; `bert_tf.layers.ClassificationHead` computes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from bert_tf.types import Options

if TYPE_CHECKING:  # which imports NumPy
    from bert_tf.models.weights import WeightMap


@dataclasses.dataclass(frozen=True)
class Features:
    """Which outputs of a frozen model's layers a BiLSTM reads, and how they are mixed: `task.frozen_layers` of `TaskConfig`.

    Args:
        layers: `task.frozen_layers`, a key of `bert_tf.tasks.features.MIXES`.
        lstm_layers, lstm_units: of the BiLSTM; units in each direction.
        mix_at: "input": the BiLSTM reads the mix; "both": another mix of the same kind stands beside its output, too.
        mix_norm: whether each layer is normalized before it is mixed.
        mix_l2: the weight of the sum of squares of the mixes' weights in the training loss.

    Example:
        TaskHead("tokens").on_features(Features("scalar_mix", lstm_units=256)).lstm_layers  # 2
    """

    layers: str
    lstm_layers: int = 2
    lstm_units: int = 768
    mix_at: Literal["input", "both"] = "input"
    mix_norm: bool = False
    mix_l2: float = 0.0


@dataclasses.dataclass(frozen=True)
class TaskHead:
    """What a head reads, and its layers before the output layer.

    Args:
        reads: "pooled": the pooled output (of a model without a pooler, a new dense layer with tanh on the first
            token);
            "first": the vector of the first token; "mean": the mean of the vectors of all real tokens; "tokens": each
            token's vector; "ends": the last vector of each direction of the BiLSTM.
        activation: of a dense layer as wide as the model before the output layer; None for no such layer.
        hidden_bias: whether that dense layer has a bias.
        norm_epsilon: of a layer normalization without a bias after that dense layer; None for none.
        input_dropout: whether there is dropout before that dense layer, too.
        dropout: the default rate; `task.head.dropout` replaces it.
        bias: whether the output layer has a bias.
        initializer: of the output layer's kernel; None for the model's truncated normal.
        pretrained: variables of the head (their paths below "head/") -> the variables of the pretraining model from
            which they start.
        width: of that dense layer; None for the width of what it reads.
        lstm_layers: of a BiLSTM with random weights, which reads each token's vector and whose outputs the other layers
            read; 0 for none.
        lstm_units: of the BiLSTM in each direction; None for half of the width of the model.
        features: what the BiLSTM reads of a frozen model; None: the last layer of one that is trained.

    Example:
        TaskHead("first", activation="relu", dropout=0.2)  # DistilBERT's
    """

    reads: Literal["pooled", "first", "mean", "tokens", "ends"] = "pooled"
    activation: str | None = None
    hidden_bias: bool = True
    norm_epsilon: float | None = None
    input_dropout: bool = False
    dropout: float = 0.1
    bias: bool = True
    initializer: str | None = None
    pretrained: dict[str, str] = dataclasses.field(default_factory=dict)
    width: int | None = None
    lstm_layers: int = 0
    lstm_units: int | None = None
    features: Features | None = None

    def above_bilstm(self, layers: int, units: int | None = None) -> TaskHead:
        """This head above a BiLSTM, by whose ends it then reads a whole text; itself for no layers.

        Example:
            TaskHead("pooled").above_bilstm(1).reads  # 'ends'
        """
        if not layers:
            return self
        reads: Any = "tokens" if self.reads == "tokens" else "ends"
        return dataclasses.replace(self, reads=reads, lstm_layers=layers, lstm_units=units, pretrained={})

    def on_features(self, features: Features) -> TaskHead:
        """BERT's head, of texts or of tokens as this one, above a BiLSTM that reads `Features` of a frozen model."""
        plain = TaskHead("tokens" if self.reads == "tokens" else "pooled", features=features)
        return plain.above_bilstm(features.lstm_layers, features.lstm_units)


#: Kind of head -> BERT's: dropout and the output layer, on the pooled output or on each token (Devlin et al. 2019,
#: section 4.1 and 5.3). Families whose head is not listed in their record have these.
BERT_HEADS = {"classification": TaskHead("pooled"), "tagging": TaskHead("tokens"), "choices": TaskHead("pooled")}


@dataclasses.dataclass(frozen=True)
class PublishedHead:
    """How another library's checkpoints hold a model with the head of one kind of task.

    Args:
        architecture: the name of its class.
        dense: their name of a linear layer -> our path, such as {"classifier": "head/dense"}; see `WeightMap`.
        arrays, transposed: see `WeightMap`.
        dropout: the keys of their configuration that hold the rate before the output layer; the first one that is
            set counts.
        default_dropout: the rate where none is set.
        fixed: keys of their configuration that change the head -> the value that we compute; absent means that value.
        head: the head of their class, where it differs from the family's own; None where it does not.
        spans: of question answering, `task.head` of their class.

    Example:
        PublishedHead("BertForSequenceClassification", {"classifier": "head/dense"}, dropout=("classifier_dropout",))
    """

    architecture: str
    dense: Mapping[str, str]
    arrays: Mapping[str, str] = dataclasses.field(default_factory=dict)
    transposed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    dropout: tuple[str, ...] = ()
    default_dropout: float = 0.0
    fixed: Mapping[str, object] = dataclasses.field(default_factory=dict)
    head: TaskHead | None = None
    spans: str = "bert"

    def weights(self, weight_map: WeightMap) -> WeightMap:
        """The family's `WeightMap` with the names of the head. They replace those of pretraining heads."""
        parts = {name: getattr(weight_map, name) | getattr(self, name) for name in ("dense", "arrays", "transposed")}
        return dataclasses.replace(weight_map, **parts)

    def rate(self, keys: Mapping[str, Any]) -> float:
        """The dropout rate that their configuration, a dict, sets."""
        rates = (keys.get(key) for key in self.dropout)
        return next((rate for rate in rates if rate is not None), self.default_dropout)


#: Kind of head -> the end of the name of Hugging Face's class.
CLASSES = {
    "classification": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "choices": "ForMultipleChoice",
    "spans": "ForQuestionAnswering",
}


def classes(name: str, **differences: Options) -> dict[str, PublishedHead]:
    """The heads of most Hugging Face classes, "BertForSequenceClassification" and the like, with a layer "classifier".

    Args:
        name: "Bert".
        differences: kind of head -> what differs: arguments of `PublishedHead`; None where there is no such class.
    """
    rates = {"dropout": ("classifier_dropout", "hidden_dropout_prob"), "default_dropout": 0.1}
    plain = dict.fromkeys(CLASSES, {"dense": {"classifier": "head/dense"}} | rates)
    plain["spans"] = {"dense": {"qa_outputs": "head/dense"}}
    return {
        kind: PublishedHead(**({"architecture": name + ending} | plain[kind] | differences.get(kind, {})))
        for kind, ending in CLASSES.items()
        if differences.get(kind, {}) is not None
    }
