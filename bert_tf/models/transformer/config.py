"""The settings, sizes and record of the Transformer of 2017. No Keras is imported."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Layers, ModelConfig, Positive, Rate, Width, check_heads


@dataclasses.dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """The settings of a Transformer (Vaswani et al. 2017); the defaults are the paper's.

    Args:
        vocabulary_size: V, of both texts together: one table is that of the source, of the target and of the softmax.
        hidden_size: H, even.
        num_layers: of the encoder.
        num_heads: attention heads; divides `hidden_size`.
        intermediate_size: I, the width inside the feed-forward network.
        num_decoder_layers: of the decoder; None becomes `num_layers`.
        norm: "post": a normalization after each part (the paper, section 3.1; tensor2tensor's `transformer_base_v1`).
            "pre": before each part, and one after each stack (`transformer_base_v2` and `_v3`).
        positions: the layout of `SinusoidalPositions`: "interleaved" (the paper), "concatenated" (tensor2tensor).
        attention_bias: whether the projections of the attentions have biases. The paper's equations and tensor2tensor
            have none; fairseq and PyTorch's `nn.Transformer` have them. The feed-forward networks always have biases.
        activation: of the feed-forward network.
        dropout: on the sum of embeddings and positions, and on every branch.
        attention_dropout: on attention probabilities: 0 in the paper, 0.1 in `transformer_base_v3`.
        inner_dropout: inside the feed-forward networks: 0 in the paper, 0.1 in `transformer_base_v3`.
        layer_norm_epsilon: added to the variance.

    Raises:
        ConfigError: a width that is odd or that the heads do not divide.

    Example:
        TransformerConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32, norm="pre")
    """

    num_layers: Layers
    num_heads: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    num_decoder_layers: Layers | None = None
    norm: Literal["post", "pre"] = "post"
    positions: Literal["interleaved", "concatenated"] = "interleaved"
    attention_bias: bool = False
    activation: Activation = "relu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    inner_dropout: Rate = 0.0
    layer_norm_epsilon: Positive = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self)
        if self.hidden_size % 2:
            raise ConfigError(f"sinusoidal positions need an even hidden_size, got {self.hidden_size}")
        if self.num_decoder_layers is None:
            object.__setattr__(self, "num_decoder_layers", self.num_layers)

    @property
    def head_size(self) -> int:
        """The width of a head."""
        return self.hidden_size // self.num_heads

    @property
    def initializer_range(self) -> float:
        """Standard deviation of the token table; heads of tasks read it, too."""
        return self.hidden_size**-0.5


#: The paper has "about 37,000 tokens" of English and German together (section 5.1). Its table 3 gives 65 and 213
#: million parameters; no one vocabulary gives both (41,000 tokens would give the first, 36,000 the second).
_VOCABULARY = 37_000


def _size(hidden, inner, heads, parameters, **changes):
    return Preset(TransformerConfig(_VOCABULARY, hidden, 6, heads, inner, **changes), parameters, parameters)


TRANSFORMER = Family(
    name="transformer",
    config=TransformerConfig,
    model="bert_tf.models.transformer.model:Transformer",
    sizes={
        # Vaswani et al. 2017, table 3.
        "transformer_base": _size(512, 2048, 8, 63_045_632),
        "transformer_big": _size(1024, 4096, 16, 214_171_648, dropout=0.3),
        # tensor2tensor's `transformer_base_v3`, which its `transformer_base` is, models/transformer.py.
        "transformer_base_v3": _size(
            512, 2048, 8, 63_047_680, norm="pre", positions="concatenated", attention_dropout=0.1, inner_dropout=0.1
        ),
    },
    objective="text_to_text",
    structure="encoder_decoder",
)
