"""The ten settings that the eight families have in common. No Keras is imported.

A family's configuration is a frozen dataclass of these and its own settings. The defaults that are not sizes
are those of the published models.
"""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError

Width = Annotated[int, Range(at_least=1, at_most=65_536)]
Layers = Annotated[int, Range(at_least=1, at_most=1_000)]
Vocabulary = Annotated[int, Range(at_least=1, at_most=10_000_000)]
Positions = Annotated[int, Range(at_least=1, at_most=1 << 24)]
Segments = Annotated[int, Range(at_least=0, at_most=65_536)]
Rate = Annotated[float, Range(at_least=0, below=1)]
Positive = Annotated[float, Range(above=0)]
#: The names of `bert_tf.layers.activation`.
Activation = Literal["gelu_tanh", "gelu_erf", "relu", "silu", "tanh", "linear"]


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """What the configurations of all families have.

    Args:
        vocabulary_size: V, rows of the token table.
        hidden_size: H.
        num_layers: L, transformer layers.
        num_heads: attention heads; divides `hidden_size`.
        intermediate_size: I, the width inside the feed-forward network; 4 H in most published models.
        activation: of the feed-forward network and the masked LM head. "gelu_tanh" is the tanh approximation
            of GELU, "gelu_erf" the exact function.
        dropout: on embeddings and on both branches of each layer.
        attention_dropout: on attention probabilities.
        layer_norm_epsilon: added to the variance of every layer norm.
        initializer_range: standard deviation of the truncated normal of kernels and tables. (Hugging Face's
            SpanBERT and DistilBERT and fairseq's RoBERTa draw from a normal that is not truncated, which has
            0.02 where this one has 0.0176.)

    Raises:
        ConfigError: a value that no model can have.
    """

    vocabulary_size: Vocabulary
    hidden_size: Width
    num_layers: Layers
    num_heads: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    activation: Activation = "gelu_tanh"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    def __post_init__(self):
        check_fields(self)
        if self.hidden_size % self.num_heads:
            raise ConfigError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")


def table_shapes(config, width="hidden_size", segments=0, rows_before=0):
    """The shapes of BERT's embedding tables, for `ExpectedShapes`.

    Args:
        config: has `max_positions`.
        width: the field that is the tables' width; where it is not H, a projection follows them.
        segments: rows of the segment table; 0 for no table.
        rows_before: rows of the position table before that of the first position.

    Returns:
        dict from variable path to (the fields that the shape comes from, the shape).
    """
    size = getattr(config, width)
    rows = config.max_positions + rows_before
    shapes = {
        "embeddings/token_embeddings": (f"vocabulary_size, {width}", (config.vocabulary_size, size)),
        "embeddings/position_embeddings": (f"max_positions, {width}", (rows, size)),
    }
    if segments:
        shapes["embeddings/segment_embeddings"] = (f"num_segments, {width}", (segments, size))
    if size != config.hidden_size:
        shapes["embedding_projection/kernel"] = (f"{width}, hidden_size", (size, config.hidden_size))
    return shapes


def transformer_layer_shapes(config):
    """The shapes in a `TransformerBlock`, by paths below it; otherwise as `table_shapes`."""
    hidden, inner = config.hidden_size, config.intermediate_size
    return {
        "intermediate/kernel": ("hidden_size, intermediate_size", (hidden, inner)),
        "attention/query/kernel": ("hidden_size", (hidden, hidden)),
    }
