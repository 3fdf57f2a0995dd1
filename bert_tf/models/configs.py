"""The settings of every family's encoder. No Keras is imported, so that a wrong setting is refused at once.

A family's configuration is a frozen dataclass: the ten settings that all families have, and its own. The
defaults that are not sizes are those of the published models.
"""

import dataclasses
import sys
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


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The settings of a BERT.

    Args:
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        activation: Google trained with the tanh approximation of GELU; Hugging Face configurations that say
            "gelu" mean "gelu_erf".
        others: as `EncoderConfig`.

    Example:
        BertConfig(vocabulary_size=8000, hidden_size=256, num_layers=4, num_heads=4, intermediate_size=1024)
    """

    max_positions: Positions = 512
    num_segments: Segments = 2


@dataclasses.dataclass(frozen=True)
class SpanBertConfig(BertConfig):
    """The settings of a SpanBERT: those of a BERT, and another default activation."""

    activation: Activation = "gelu_erf"


@dataclasses.dataclass(frozen=True)
class RobertaConfig(EncoderConfig):
    """The settings of a RoBERTa.

    Args:
        max_positions: the longest sequence. The table has padding_id + 1 more rows: published
            configurations say 514.
        num_segments: 1 as in Hugging Face's checkpoints: every token gets the same row; 0 as in fairseq's,
            which have none. Segment ids are not read.
        padding_id: the tokenizer's padding id; positions are counted from the row after it.
        activation: of the feed-forward network. The masked LM head's is the exact GELU whatever this is, as
            Hugging Face's.
        others: as `EncoderConfig`.
    """

    activation: Activation = "gelu_erf"
    layer_norm_epsilon: Positive = 1e-5
    max_positions: Positions = 512
    num_segments: Segments = 1
    padding_id: Annotated[int, Range(at_least=0, at_most=10_000_000)] = 1


@dataclasses.dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """The settings of an ALBERT.

    Args:
        embedding_size: E, the width of the tables and of the masked LM head.
        num_layers: L, layers as they are computed, whatever they share; each is `inner_groups` transformer
            blocks.
        share: what the layers of a group share: "all", "attention" or "feed_forward" with its normalization,
            or "none".
        num_groups: layer i belongs to group int(i * num_groups / L).
        inner_groups: blocks, with weights of their own, that make up one layer.
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        dropout, attention_dropout: version 2 and the xxlarge models were trained without.
        others: as `EncoderConfig`; the activation as `BertConfig`.
    """

    embedding_size: Width = dataclasses.field(kw_only=True)
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    share: Literal["all", "attention", "feed_forward", "none"] = "all"
    num_groups: Layers = 1
    inner_groups: Layers = 1
    max_positions: Positions = 512
    num_segments: Segments = 2

    def __post_init__(self):
        super().__post_init__()
        if self.num_groups > self.num_layers:
            raise ConfigError(f"num_groups={self.num_groups} is more than num_layers={self.num_layers}")


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """The settings of a DistilBERT.

    Args:
        max_positions: the longest sequence.
        dropout: on embeddings and on the feed-forward branch of each layer (and, unlike the original, which
            has none there, on the attention branch).
        others: as `EncoderConfig`.
    """

    activation: Activation = "gelu_erf"
    max_positions: Positions = 512


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """The settings of a ModernBERT.

    Args:
        num_heads: attention heads; divides `hidden_size` into even parts.
        intermediate_size: I, the width of each half of the gated network.
        max_positions: the longest sequences it was trained on. Positions are rotations, so longer ones are
            computed, too.
        global_attention_every: n; layers 0, n, 2 n, ... see all tokens, the others near ones.
        local_attention: w; a local layer sees w // 2 tokens on each side.
        global_theta, local_theta: the bases of the rotary wavelengths in global and local layers.
        activation: of the gate and the masked LM head.
        dropout: on the embeddings and inside the gated networks. The released configurations have none.
        attention_dropout: on attention probabilities and on the attention's output.
        initializer_range: of the kernels whose results are added to the residual stream, and of the masked
            LM head, it is divided by sqrt(2 * num_layers).
        others: as `EncoderConfig`.
    """

    activation: Activation = "gelu_erf"
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    layer_norm_epsilon: Positive = 1e-5
    max_positions: Positions = 8192
    global_attention_every: Annotated[int, Range(at_least=1)] = 3
    local_attention: Annotated[int, Range(at_least=1)] = 128
    global_theta: Positive = 160_000.0
    local_theta: Positive = 10_000.0

    def __post_init__(self):
        super().__post_init__()
        head_size = self.hidden_size // self.num_heads
        if head_size % 2:
            raise ConfigError(f"rotary positions need an even head size, got {head_size} = hidden_size / num_heads")

    @property
    def output_initializer_range(self):
        """Of the kernels that write to the residual stream."""
        return self.initializer_range / (2 * self.num_layers) ** 0.5


@dataclasses.dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """The settings of an ELECTRA discriminator or generator: BERT's, with a width of the embeddings.

    Args:
        embedding_size: E, the width of the embedding tables; where it is not H a linear layer follows them.
            128 in ELECTRA-small; a generator has its discriminator's.
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        activation: google-research/electra computes GELU with the error function.
        initializer_range: not of the linear layer after the embeddings and of the last one of the
            discriminator's head, which google-research/electra leaves to Glorot's initializer.
        others: as `EncoderConfig`.
    """

    embedding_size: Width = dataclasses.field(kw_only=True)
    activation: Activation = "gelu_erf"
    max_positions: Positions = 512
    num_segments: Segments = 2


@dataclasses.dataclass(frozen=True)
class XLNetConfig(EncoderConfig):
    """The settings of an XLNet.

    The three biases of attention are each layer's own (`untie_r` of the original, set in all published
    models), and attention is bidirectional (`attn_type` "bi").

    Args:
        hidden_size: H, even: half of it holds sines of the distance, half cosines.
        activation: the original code's flag has "relu" as its default, the published models say "gelu",
            which there is the tanh approximation.
        dropout: on embeddings, on the sinusoids, on both branches of each layer, inside the feed-forward
            network, and on the last layer's output. In the original code, too, one flag sets them all; table 7
            of the paper gives 0.0 inside the feed-forward network.
        initializer_range: standard deviation of the normal, not truncated, of kernels and tables. (The vector
            that stands for a token to be predicted is drawn from it, too; the original leaves that one to
            TensorFlow's default, Glorot.)
        clamp_length: distances beyond it count as it; None, as published, for no limit.
        others: as `EncoderConfig`.
    """

    clamp_length: Annotated[int | None, Range(at_least=1)] = None

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % 2:
            raise ConfigError(f"hidden_size={self.hidden_size} must be even: half sines, half cosines")

    @property
    def max_positions(self):
        """The longest sequence: distances are computed, not looked up, so there is no limit."""
        return sys.maxsize


#: The name of each family, as `model.family` has it, and its configuration.
FAMILY_CONFIGS = {
    "bert": BertConfig,
    "roberta": RobertaConfig,
    "albert": AlbertConfig,
    "distilbert": DistilBertConfig,
    "modernbert": ModernBertConfig,
    "electra": ElectraConfig,
    "spanbert": SpanBertConfig,
    "xlnet": XLNetConfig,
}

GENERATOR_FAMILIES = "replaced token detection is for ELECTRA, BERT and the families with BERT's embeddings"


def generator_config(config, size=0.25):
    """The settings of the generator that belongs to a discriminator.

    `get_generator_config` of google-research/electra `run_pretraining.py`: narrower, with as many
    layers, one head for every 64 numbers and a feed-forward network four times as wide. (What was
    released as electra-small-generator is as wide as its discriminator: the preset
    `electra_small_generator`.)

    Args:
        config: of the discriminator: an `ElectraConfig`, or another family's with its fields.
        size: the share of the discriminator's width: 1/4 for small and large, 1/3 for base.

    Returns:
        ElectraConfig, with the discriminator's `embedding_size`.

    Raises:
        ConfigError: a size that leaves no width, or one that the heads cannot share, or a family
            that is not like BERT.
    """
    fields = {field.name for field in dataclasses.fields(config)}
    if "max_positions" not in fields:
        raise ConfigError(f"{type(config).__name__} has no 'max_positions'; {GENERATOR_FAMILIES}")
    hidden_size = round(config.hidden_size * size)
    if hidden_size < 1:
        raise ConfigError(f"a generator of {size} of the width {config.hidden_size} has no width left")
    values = {
        "embedding_size": getattr(config, "embedding_size", config.hidden_size),
        "hidden_size": hidden_size,
        "num_heads": max(1, hidden_size // 64),
        "intermediate_size": 4 * hidden_size,
        "num_segments": getattr(config, "num_segments", 0),  # DistilBERT has none
    }
    for field in dataclasses.fields(ElectraConfig):
        values.setdefault(field.name, getattr(config, field.name, field.default))
    return ElectraConfig(**values)
