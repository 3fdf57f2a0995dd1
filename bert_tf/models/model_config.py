"""The settings that families have in common. No Keras is imported.

A family's configuration is a frozen dataclass of these and its own settings. The defaults that are not sizes
are those of the published models.
"""

import dataclasses
import sys
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError
from bert_tf.types import Config, Settings

Width = Annotated[int, Range(at_least=1, at_most=65_536)]
Layers = Annotated[int, Range(at_least=1, at_most=1_000)]
Vocabulary = Annotated[int, Range(at_least=1, at_most=10_000_000)]
Positions = Annotated[int, Range(at_least=1, at_most=1 << 24)]
TokenId = Annotated[int, Range(at_least=0, at_most=10_000_000)]
Segments = Annotated[int, Range(at_least=0, at_most=65_536)]
Rate = Annotated[float, Range(at_least=0, below=1)]
Positive = Annotated[float, Range(above=0)]
#: The settings of all families that are dropout rates: they change training alone.
DROPOUT_RATES = ("dropout", "attention_dropout", "inner_dropout", "embedding_dropout")
#: The names of `bert_tf.layers.activation`.
Activation = Literal["gelu_tanh", "gelu_erf", "relu", "silu", "tanh", "linear"]


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The base of every family's configuration: its fields are checked, and cannot be changed.

    The masked LM head and the heads of tasks also read `activation`, `layer_norm_epsilon`, `initializer_range`.

    Args:
        vocabulary_size: V, rows of the token table.
        hidden_size: H, the width of what the model returns for a token.

    Raises:
        ConfigError: a value of the wrong type or out of its range.

    Example:
        @dataclasses.dataclass(frozen=True)
        class GruConfig(ModelConfig):
            num_layers: Layers = 1
            dropout: Rate = 0.1
    """

    vocabulary_size: Vocabulary
    hidden_size: Width

    # What the models of a family have that some objectives need; not settings.
    #: A position table beside the token table, both of which ELECTRA's generator shares.
    has_position_table: ClassVar[bool] = False
    #: A second stream, which predicts tokens from their positions (XLNet).
    has_query_stream: ClassVar[bool] = False
    #: Vectors whose halves are those of a forward and of a backward model (ELMo); `outputs_of_layers` has both.
    has_directions: ClassVar[bool] = False
    #: Token ids [B, S, characters] in place of [B, S].
    reads_characters: ClassVar[bool] = False
    #: The end at which Hugging Face's classes of the family want padding.
    padding_side: ClassVar[str] = "right"

    def __post_init__(self) -> None:
        check_fields(self)

    def check_masked_lm(self) -> None:
        """Raises ConfigError where a model of these settings has no masked LM head."""
        if self.reads_characters:
            raise ConfigError(
                "masked_lm hides tokens, and this model reads the characters of words; set "
                "objective.name=bidirectional_lm, or another model.family"
            )

    @property
    def reads_segments(self) -> bool:
        """Whether a model of these settings tells segments apart."""
        return getattr(self, "num_segments", 0) > 1

    @property
    def max_positions(self) -> int:
        """The longest sequence; a family with a limit has a field of this name."""
        return sys.maxsize

    @property
    def skipped_id(self) -> int | None:
        """A token that a decoder's pooled output is not read from; a family that can have one has a field of this name."""
        return None


@dataclasses.dataclass(frozen=True)
class StackConfig(ModelConfig):
    """The settings that BERT, the families like it and the GPTs have in common.

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

    Example:
        StackConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    num_layers: Layers
    num_heads: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    activation: Activation = "gelu_tanh"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self)


def check_heads(config: Config) -> None:
    """Refuses a width that cannot be divided among the heads.

    Raises:
        ConfigError: `hidden_size` is not a multiple of `num_heads`.
    """
    if config.hidden_size % config.num_heads:
        raise ConfigError(f"hidden_size={config.hidden_size} is not a multiple of num_heads={config.num_heads}")


def published_sizes(num_layers: int, hidden_size: int, intermediate_size: int | None = None) -> Settings:
    """The sizes of most published models, a dict: heads of 64, a feed-forward network four times as wide."""
    return {
        "hidden_size": hidden_size,
        "num_layers": num_layers,
        "num_heads": hidden_size // 64,
        "intermediate_size": intermediate_size or 4 * hidden_size,
    }
