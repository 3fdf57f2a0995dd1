"""The sections of a task's settings. No TensorFlow is imported.

A kind of task declares which sections it has, and of which class: a setting that it does not have is an unknown key.
"""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.task_heads import Features

_Dropout = Annotated[float | None, Range(at_least=0, below=1)]


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """The layers before the output layer. `name` chooses them, and the class with the other settings.

    Attributes:
        name: "published": those that the model's family was published with; "bert": BERT's, for any family;
            "hugging_face": those of Hugging Face's class, which differ for ELECTRA and GPT-1; "mean": none, and the
            output layer reads the mean of the vectors of all tokens, as of models whose first token learned little;
            "bilstm": a bidirectional LSTM between the model and such layers, which starts from random weights and is
            trained with both (table 5 of Devlin et al. 2019, "+ BiLSTM"); a text is then read by what each direction
            computed last. Tagging has no "mean", pairs of words no "bilstm".
        dropout: the rate before the output layer. None: the head's own: 0.1 (section 3.5 of Devlin et al. 2019),
            DistilBERT 0.2, RoBERTa, ModernBERT and GPT-2 0.

    Example:
        HeadConfig("bert", dropout=0.0)
    """

    CHOSEN_BY: ClassVar[str] = "name"
    NAMES: ClassVar[tuple[str, ...]] = ("published", "bert", "hugging_face", "mean", "bilstm")

    name: str = "published"
    dropout: _Dropout = None

    @classmethod
    def choices(cls):
        """Name -> settings of every head, for `bert_tf.config.build`."""
        return {name: BiLSTMHeadConfig if name == "bilstm" else cls for name in cls.NAMES}


@dataclasses.dataclass(frozen=True)
class BiLSTMHeadConfig(HeadConfig):
    """A BiLSTM below a head.

    Attributes:
        layers: of the BiLSTM.
        units: in each direction. None: half of the model's width, so that the head's stays the same.
        above: the name of the head that reads it.

    Example:
        BiLSTMHeadConfig(layers=2, units=256)
    """

    name: str = "bilstm"
    layers: Annotated[int, Range(at_least=1)] = 1
    units: Annotated[int | None, Range(at_least=1)] = None
    above: Literal["published", "bert", "hugging_face"] = "published"


@dataclasses.dataclass(frozen=True)
class TokenHeadConfig(HeadConfig):
    """The layers before the output layer of a task on tokens."""

    NAMES: ClassVar[tuple[str, ...]] = ("published", "bert", "hugging_face", "bilstm")


@dataclasses.dataclass(frozen=True)
class WordPairHeadConfig(HeadConfig):
    """The layers before the output layer of a task on pairs of words."""

    NAMES: ClassVar[tuple[str, ...]] = ("published", "bert", "hugging_face", "mean")


@dataclasses.dataclass(frozen=True)
class SpanHeadConfig:
    """The layers that find the start and the end of an answer. `name` chooses them, and the class with the other settings.

    Attributes:
        name: "published": the one that the model family was published with; ALBERT has "xlnet" where questions may be
            impossible, else "bert". "bert": one dense layer gives the start and the end of the span (SpanBERT, RoBERTa
            and others have it, too). "modernbert": as "bert", with the pretrained layers of the masked LM head before
            it. "electra": the end depends on the start, and a classifier tells impossible questions. "xlnet": as
            "electra" in another form, also of ALBERT version 2.

    Example:
        SpanHeadConfig("bert")
    """

    CHOSEN_BY: ClassVar[str] = "name"

    name: str = "published"

    @classmethod
    def choices(cls):
        """Name -> settings of every head, for `bert_tf.config.build`."""
        dense = dict.fromkeys(("published", "bert", "modernbert"), DropoutSpanHeadConfig)
        return dense | {"electra": BeamSpanHeadConfig, "xlnet": XLNetSpanHeadConfig}


@dataclasses.dataclass(frozen=True)
class DropoutSpanHeadConfig(SpanHeadConfig):
    """A span head with dropout.

    Attributes:
        dropout: the rate before the output layer, or before the answer class of XLNet's. None: 0 (BERT, ModernBERT),
            the encoder's rate (XLNet).

    Example:
        DropoutSpanHeadConfig("bert", dropout=0.1)
    """

    dropout: _Dropout = None


@dataclasses.dataclass(frozen=True)
class BeamSpanHeadConfig(SpanHeadConfig):
    """A span head whose end depends on the start.

    Attributes:
        beam: how many starts of a window, and how many ends for each start, are looked at. None: 20 (ELECTRA), 5
            (XLNet).

    Example:
        BeamSpanHeadConfig("electra", beam=20)
    """

    name: str = "electra"
    beam: Annotated[int | None, Range(at_least=1, at_most=100)] = None


@dataclasses.dataclass(frozen=True)
class XLNetSpanHeadConfig(BeamSpanHeadConfig, DropoutSpanHeadConfig):
    """XLNet's span head, with a beam and dropout.

    Example:
        XLNetSpanHeadConfig(beam=5, dropout=0.1)
    """

    name: str = "xlnet"


@dataclasses.dataclass(frozen=True)
class FrozenLayersConfig:
    """Which outputs of a frozen model a BiLSTM reads: the feature-based approach of Devlin et al. 2019, table 7.

    `name` chooses them, and the class with the other settings.

    Attributes:
        name: "none": the model is fine-tuned. "embeddings", "second_to_last", "last", "concatenate_last_four",
            "weighted_sum_last_four" and "weighted_sum_all" of the layers; "scalar_mix" is the weighted sum of all
            layers and the embeddings, as ELMo is used. A text is read by what each direction of the BiLSTM computed
            last.

    Example:
        FrozenLayersConfig()
    """

    CHOSEN_BY: ClassVar[str] = "name"

    name: str = "none"

    @classmethod
    def choices(cls):
        """Name -> settings of every choice, for `bert_tf.config.build`."""
        plain = ("embeddings", "second_to_last", "last", "concatenate_last_four")
        weighted = ("weighted_sum_last_four", "weighted_sum_all", "scalar_mix")
        chosen = dict.fromkeys(plain, LayersConfig) | dict.fromkeys(weighted, WeightedLayersConfig)
        return {"none": FrozenLayersConfig} | chosen

    @property
    def features(self) -> Features | None:
        """The `Features` that the BiLSTM reads; None where the model is fine-tuned."""
        if self.name == "none":
            return None
        return Features(**{"layers" if name == "name" else name: value for name, value in vars(self).items()})


@dataclasses.dataclass(frozen=True)
class LayersConfig(FrozenLayersConfig):
    """A BiLSTM above layers of a frozen model.

    Attributes:
        lstm_layers: of the BiLSTM.
        lstm_units: of the BiLSTM in each direction. (The paper has "a two-layer 768-dimensional BiLSTM".)
        mix_at: where the features stand. "input": the BiLSTM reads them; "both": a second mix of the same kind is read
            by the output layer beside the BiLSTM's output (Peters et al. 2018, section 3.2); of a text the mean of its
            tokens.

    Example:
        LayersConfig("last", lstm_units=256)
    """

    name: str = "last"
    lstm_layers: Annotated[int, Range(at_least=1)] = 2
    lstm_units: Annotated[int, Range(at_least=1)] = 768
    mix_at: Literal["input", "both"] = "input"


@dataclasses.dataclass(frozen=True)
class WeightedLayersConfig(LayersConfig):
    """A BiLSTM above a weighted sum of layers of a frozen model.

    Attributes:
        mix_norm: whether each layer is normalized first over all tokens of the batch.
        mix_l2: the weight of the sum of squares of the sum's weights in the training loss; 0: none. Peters et al. 2018
            (section 3.3) add it and call the weight lambda.

    Example:
        WeightedLayersConfig("scalar_mix", mix_l2=1e-3)
    """

    name: str = "scalar_mix"
    mix_norm: bool = False
    mix_l2: Annotated[float, Range(at_least=0)] = 0.0


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """What the models that were pretrained without a separator, or from left to right, need.

    Attributes:
        layout: the special tokens around the texts. None: the tokenizer's own; for texts and pairs a tokenizer
            without any gets "t5" if it has a separator (GPT-2's <|endoftext|>), else "gpt1". "gpt1": `_start_` text
            `_classify_`, `_start_` text `_delimiter_` text `_classify_`, three tokens with new rows in the token table;
            "t5": each text ends with the separator. Only for BPE tokenizers.

    Example:
        DecoderConfig(layout="gpt1")
    """

    layout: Literal["gpt1", "t5", "none"] | None = None


@dataclasses.dataclass(frozen=True)
class LMDecoderConfig(DecoderConfig):
    """What decoders need in a task that can be trained beside language modelling.

    Attributes:
        lm_weight: the weight of an auxiliary language modelling loss on the texts, for decoders; GPT-1 has 0.5
            (equation 5). The loss is a mean over each example's own tokens, then over examples. 0: none.

    Example:
        LMDecoderConfig(layout="gpt1", lm_weight=0.5)
    """

    lm_weight: Annotated[float, Range(at_least=0)] = 0.0


@dataclasses.dataclass(frozen=True)
class PairDecoderConfig(LMDecoderConfig):
    """What decoders need in a task on texts and pairs of texts.

    Attributes:
        pair_order: "both": each pair is read in both orders and the two pooled vectors are added, as GPT-1 does for
            similarity (Radford et al. 2018, section 3.3); "given": in the order of the file.

    Example:
        PairDecoderConfig(pair_order="both")
    """

    pair_order: Literal["given", "both"] = "given"


@dataclasses.dataclass(frozen=True)
class GainDecoderConfig(LMDecoderConfig):
    """What decoders need in a task whose label every token can predict.

    Attributes:
        linear_gain: of classification by a decoder, whether in training each token predicts the label, with weights
            that rise from the first token to the last (Dai and Le 2015): 1 to n, divided by their sum, of each text.
            (adversarial_text: i / (n - 1) from 0 to 1, divided by their sum in the batch.) false: the last token alone.

    Example:
        GainDecoderConfig(linear_gain=True)
    """

    linear_gain: bool = False


@dataclasses.dataclass(frozen=True)
class ClassificationDecoderConfig(GainDecoderConfig, PairDecoderConfig):
    """What decoders need in classification.

    Example:
        ClassificationDecoderConfig(layout="gpt1", pair_order="both")
    """


@dataclasses.dataclass(frozen=True)
class LabelLossConfig:
    """The training loss over a set of labels. The reported `loss` has neither weights nor smoothing.

    Attributes:
        class_weights: the weight of each label's examples in the training loss, a list in the order of the labels
            (`labels`, else sorted); "balanced": examples / (labels x examples of the label) in the training file, as
            scikit-learn's. The loss is divided by the sum of the weights. None: all weigh 1.
        label_smoothing: the part of each target that is spread evenly over all labels in the training loss (Szegedy
            et al. 2016, section 7); 0: none.

    Raises:
        ConfigError: a negative weight, or none above 0.

    Example:
        LabelLossConfig(class_weights="balanced")
    """

    class_weights: tuple[float, ...] | Literal["balanced"] | None = None
    label_smoothing: Annotated[float, Range(at_least=0, below=1)] = 0.0

    def __post_init__(self):
        weights = self.class_weights
        if weights not in (None, "balanced") and (any(weight < 0 for weight in weights) or not any(weights)):
            raise ConfigError(f"class_weights is {list(weights)}; weights are at least 0, and one is above 0")
