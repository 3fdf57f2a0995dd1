"""The settings and the record of the transformer biLM. No Keras is imported."""

import dataclasses
from typing import ClassVar

from bert_tf.errors import ConfigError
from bert_tf.models.encoder_config import EncoderConfig, Positions, Positive
from bert_tf.models.family import Family


@dataclasses.dataclass(frozen=True)
class TransformerBiLMConfig(EncoderConfig):
    """The settings of two one-directional transformers whose outputs are concatenated.

    Args:
        hidden_size: H, the width of both directions together; each has H / 2, as has the token table.
        num_layers: L, in each direction.
        num_heads: of each direction.
        intermediate_size: I, of each direction.
        max_positions: rows of the position table: the longest text.
        others: as `EncoderConfig`.

    Raises:
        ConfigError: as `EncoderConfig`; half of `hidden_size` cannot be divided among the heads.

    Example:
        TransformerBiLMConfig(100, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64, max_positions=64)
    """

    has_directions: ClassVar[bool] = True

    max_positions: Positions = 512
    layer_norm_epsilon: Positive = 1e-5

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % (2 * self.num_heads):
            raise ConfigError(
                f"hidden_size={self.hidden_size} is of both directions together; it must be a multiple of 2 * num_heads, "
                f"{2 * self.num_heads}"
            )

    @property
    def direction_size(self):
        """H / 2, the width of one direction."""
        return self.hidden_size // 2


TRANSFORMER_BILM = Family(
    name="transformer_bilm",
    config=TransformerBiLMConfig,
    model="bert_tf.models.transformer_bilm:TransformerBiLM",
    objective="bidirectional_lm",
)
