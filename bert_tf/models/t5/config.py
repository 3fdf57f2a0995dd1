"""Settings, sizes and records of T5. No Keras is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Layers, ModelConfig, Positive, Rate, Width
from bert_tf.models.task_heads import TaskHead
from bert_tf.types import Config, Settings


@dataclasses.dataclass(frozen=True)
class T5StackConfig(ModelConfig):
    """The settings of T5's encoder alone, or of a decoder with T5's layers.

    Args:
        vocabulary_size: V, rows of the token table.
        hidden_size: H.
        num_layers: L.
        num_heads: attention heads.
        head_size: d; num_heads * d need not be H.
        intermediate_size: I, the width inside the feed-forward network, of each half where it is gated.
        activation: of the feed-forward network: "relu" (T5 1.0), "gelu_tanh" (T5 1.1, mT5, ByT5).
        gated: whether the feed-forward network is gated: T5 1.1, mT5, ByT5.
        dropout: on embeddings, on every branch, on attention probabilities, inside the feed-forward networks and on
            the result.
        layer_norm_epsilon: added to the mean square.
        num_buckets: of the relative positions, of both directions together; see `RelativePositionBias`.
        max_distance: of the relative positions: from there on all distances count as one.
    """

    num_layers: Layers
    num_heads: Width
    head_size: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    activation: Activation = "relu"
    gated: bool = False
    dropout: Rate = 0.1
    layer_norm_epsilon: Positive = 1e-6
    num_buckets: Annotated[int, Range(at_least=4, at_most=65_536)] = 32
    max_distance: Annotated[int, Range(at_least=4, at_most=1 << 24)] = 128

    @property
    def initializer_range(self) -> float:
        """Of keys, values and the first kernels of the feed-forward networks; heads of tasks read it, too."""
        return self.hidden_size**-0.5


@dataclasses.dataclass(frozen=True)
class T5EncoderConfig(T5StackConfig):
    """The settings of T5's encoder without its decoder.

    Example:
        T5EncoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)
    """

    def check_masked_lm(self) -> None:
        # Logits with a token table of unit variance would begin far from even, at 38 nats for 1,000 tokens.
        raise ConfigError(
            "model.family=t5_encoder has no masked LM: pretrain model.family=t5 with objective.name=denoising, and fine-tune "
            "from that run; tasks that write no text take its encoder"
        )


def encoder_alone(config: Config) -> T5EncoderConfig:
    """The `T5EncoderConfig` of the encoder of a `T5Config`."""
    names = (field.name for field in dataclasses.fields(T5EncoderConfig))
    return T5EncoderConfig(**{name: getattr(config, name) for name in names})


def _heads(config):
    """No token stands for the text: a head of texts reads the mean of all (Ni et al. 2022, "Sentence-T5")."""
    return {"classification": TaskHead("mean")}


def _checkpoints():
    from bert_tf.models.t5 import checkpoints

    return checkpoints


T5_ENCODER = Family(
    name="t5_encoder",
    config=T5EncoderConfig,
    model="bert_tf.models.t5.model:T5Encoder",
    checkpoints=lambda: {"hf": _checkpoints().ENCODER_HF},
    heads=_heads,
)


@dataclasses.dataclass(frozen=True)
class T5Config(T5StackConfig):
    """The settings of a T5.

    Args:
        vocabulary_size: V, rows of the token table; the published ones are rounded up to a multiple of 128.
        hidden_size: H.
        num_layers: of the encoder.
        num_heads: attention heads.
        head_size: d; num_heads * d need not be H.
        intermediate_size: I, the width inside the feed-forward network, of each half where it is gated.
        num_decoder_layers: of the decoder; None becomes `num_layers`.
        activation: of the feed-forward network: "relu" (T5 1.0), "gelu_tanh" (the others).
        gated: whether the feed-forward network is gated: T5 1.1, mT5, ByT5.
        tied: whether the output layer is the token table: T5 1.0.
        scale_outputs: whether the decoder's output is divided by sqrt(H) before the output layer; None becomes `tied`.
            transformers 5 also makes models whose output layer is the token table without that factor.
        share_layers: whether the decoder has the encoder's self-attention and feed-forward networks: "shared" in
            table 2 of the paper.
        dropout: on embeddings, on every branch, on attention probabilities, inside the feed-forward networks and on
            the results of encoder and decoder. T5 1.1 was pretrained without.
        layer_norm_epsilon: added to the mean square.
        num_buckets: of the relative positions, of both directions together; see `RelativePositionBias`.
        max_distance: of the relative positions: from there on all distances count as one.

    Raises:
        ConfigError: `share_layers` with another number of layers in the decoder.

    Example:
        T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)
    """

    num_decoder_layers: Layers | None = None
    tied: bool = True
    scale_outputs: bool | None = None
    share_layers: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_decoder_layers is None:
            object.__setattr__(self, "num_decoder_layers", self.num_layers)
        if self.scale_outputs is None:
            object.__setattr__(self, "scale_outputs", self.tied)
        if self.share_layers and self.num_decoder_layers != self.num_layers:
            raise ConfigError(
                f"share_layers needs as many layers in both, got {self.num_layers} and {self.num_decoder_layers}"
            )


def _size(vocabulary_size, hidden, inner, heads, head_size, layers, parameters, newer=True, decoder_layers=None):
    version: Settings = {"activation": "gelu_tanh", "gated": True, "tied": False} if newer else {}
    version["num_decoder_layers"] = decoder_layers
    config = T5Config(vocabulary_size, hidden, layers, heads, head_size, inner, **version)
    return Preset(config, parameters, parameters)


_T5_1_1 = {  # hidden, inner, heads, head size, layers
    "small": (512, 1024, 6, 64, 8),
    "base": (768, 2048, 12, 64, 12),
    "large": (1024, 2816, 16, 64, 24),
    "xl": (2048, 5120, 32, 64, 24),
    "xxl": (4096, 10240, 64, 64, 24),
}
_T5_1_1_PARAMETERS = (76_961_152, 247_577_856, 783_150_080, 2_849_757_184, 11_135_332_352)
_MT5_PARAMETERS = (300_176_768, 582_401_280, 1_229_581_312, 3_742_619_648, 12_921_057_280)


T5_FAMILY = Family(
    name="t5",
    config=T5Config,
    model="bert_tf.models.t5.model:T5",
    sizes={
        # google-research/text-to-text-transfer-transformer.
        "t5_small": _size(32_128, 512, 2048, 8, 64, 6, 60_506_624, newer=False),
        "t5_base": _size(32_128, 768, 3072, 12, 64, 12, 222_903_552, newer=False),
        "t5_large": _size(32_128, 1024, 4096, 16, 64, 24, 737_668_096, newer=False),
        "t5_3b": _size(32_128, 1024, 16_384, 32, 128, 24, 2_851_598_336, newer=False),
        "t5_11b": _size(32_128, 1024, 65_536, 128, 128, 24, 11_307_321_344, newer=False),
        **{f"t5_1_1_{n}": _size(32_128, *s, count) for (n, s), count in zip(_T5_1_1.items(), _T5_1_1_PARAMETERS)},
        # google-research/multilingual-t5 and google-research/byt5.
        **{f"mt5_{n}": _size(250_112, *s, count) for (n, s), count in zip(_T5_1_1.items(), _MT5_PARAMETERS)},
        "byt5_small": _size(384, 1472, 3584, 6, 64, 12, 299_637_760, decoder_layers=4),
        "byt5_base": _size(384, 1536, 3968, 12, 64, 18, 581_653_248, decoder_layers=6),
        "byt5_large": _size(384, 1536, 3840, 16, 64, 36, 1_228_183_552, decoder_layers=12),
        "byt5_xl": _size(384, 2560, 6720, 32, 64, 36, 3_737_801_728, decoder_layers=12),
        "byt5_xxl": _size(384, 4672, 12_352, 64, 64, 36, 12_906_899_328, decoder_layers=12),
    },
    checkpoints=lambda: {"hf": _checkpoints().HF, "tf1": _checkpoints().TF1, "keras_hub": _checkpoints().HUB},
    objective="denoising",
    structure="encoder_decoder",
    encoder_alone=encoder_alone,
)


@dataclasses.dataclass(frozen=True)
class T5DecoderConfig(T5StackConfig):
    """The settings of a decoder with T5's layers: "language model" and "prefix LM" in table 2 of the T5 paper.

    The token table is the output layer, too, with x / sqrt(H) before it.

    Args:
        prefix: whether the tokens of a source see each other in both directions ("prefix LM"), in training and, for
            the prompt, in generation. False: a token sees itself and the tokens before it ("language model").
        others: see `T5StackConfig`.

    Example:
        T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
    """

    prefix: bool = False


T5_DECODER = Family(
    name="t5_decoder",
    config=T5DecoderConfig,
    model="bert_tf.models.t5.model:T5Decoder",
    objective="denoising",
    structure="decoder",
)
