"""The settings, sizes and records of T5 1.0, T5 1.1, mT5 and ByT5. No Keras is imported."""

import dataclasses

from bert_tf.errors import ConfigError
from bert_tf.models.encoder_config import Layers
from bert_tf.models.family import Family, Preset
from bert_tf.models.t5_encoder_config import T5StackConfig, encoder_alone


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

    def __post_init__(self):
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
    others = {"activation": "gelu_tanh", "gated": True, "tied": False} if newer else {}
    others["num_decoder_layers"] = decoder_layers
    config = T5Config(vocabulary_size, hidden, layers, heads, head_size, inner, **others)
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
    model="bert_tf.models.t5:T5",
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
    checkpoints={"hf": "bert_tf.models.t5:HF", "tf1": "bert_tf.models.t5:TF1"},
    objective="denoising",
    kind="encoder_decoder",
    encoder_alone=encoder_alone,
)
