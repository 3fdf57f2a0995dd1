"""Settings, sizes and records of ELMo. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import (
    Activation,
    Layers,
    ModelConfig,
    Positions,
    Positive,
    Rate,
    StackConfig,
    Vocabulary,
    Width,
)
from bert_tf.models.task_heads import TaskHead

#: bilm-tf's characters, 256 bytes and five marks, and padding words.
CHARACTERS = 262
#: (width, number) of the convolutions of every published model.
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@dataclasses.dataclass(frozen=True)
class ElmoConfig(ModelConfig):
    """The settings of an ELMo.

    Args:
        vocabulary_size: rows of the table of characters.
        hidden_size: H, the width of a layer's output: both directions side by side.
        num_layers: LSTMs in each direction.
        units: the width of an LSTM's cell; its output is projected to H / 2.
        character_size: the width of a character's vector.
        filters: pairs (width, number) of the convolutions over the characters of a word.
        highways: highway layers between the convolutions and the projection to H / 2.
        max_characters: characters of a word that are read, the marks of its begin and end among them.
        cell_clip: the largest absolute value of a cell; None for none.
        projection_clip: the largest absolute value of a projected output; None for none.
        skip_connections: whether an LSTM's input is added to its output, from the second layer on.
        mix_norm: whether each layer is normalized before the layers are mixed; see `ScalarMix`.
        dropout: on the input and the output of each LSTM, in pretraining.
        unroll: truncated backpropagation: each direction reads a row in segments of so many words, the state goes from
            each to the next and the gradient does not (bilm-tf: 20). It changes training alone. null: the gradient goes
            through the row.
        activation: of the convolutions.
        layer_norm_epsilon: of heads.
        initializer_range: standard deviation of the kernels of heads.

    Raises:
        ConfigError: an odd `hidden_size`; a filter that is not a pair, or wider than a word.

    Example:
        ElmoConfig(hidden_size=16, units=32, character_size=4, filters=((1, 8), (2, 8)), highways=1)
    """

    has_directions: ClassVar[bool] = True
    reads_characters: ClassVar[bool] = True

    vocabulary_size: Vocabulary = CHARACTERS
    hidden_size: Width = 1024
    num_layers: Layers = 2
    units: Width = 4096
    character_size: Width = 16
    filters: tuple[tuple[int, ...], ...] = FILTERS
    highways: Annotated[int, Range(at_least=0, at_most=100)] = 2
    max_characters: Annotated[int, Range(at_least=3, at_most=1000)] = 50
    cell_clip: Positive | None = 3.0
    projection_clip: Positive | None = 3.0
    skip_connections: bool = True
    mix_norm: bool = False
    dropout: Rate = 0.1
    unroll: Annotated[int | None, Range(at_least=1)] = None
    activation: Activation = "relu"
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % 2:
            raise ConfigError(
                f"hidden_size is {self.hidden_size}; it must be even, because each direction has half of it"
            )
        for pair in self.filters:
            if len(pair) != 2 or not 1 <= pair[0] <= self.max_characters or not 1 <= pair[1] <= 65_536:
                raise ConfigError(
                    f"filters holds {list(pair)}; each must be a pair of a width, 1 to max_characters="
                    f"{self.max_characters}, and a number of filters, 1 to 65536"
                )
        if not self.filters:
            raise ConfigError("filters is empty; give a pair of a width and a number of filters at least")

    @property
    def intermediate_size(self) -> int:
        """The width of the gates of one direction, by which a precision is chosen."""
        return 4 * self.units


def _size(units, half, highways, parameters):
    config = ElmoConfig(units=units, hidden_size=2 * half, highways=highways)
    return Preset(config, parameters, parameters)


def _checkpoints():
    from bert_tf.models.elmo import checkpoints

    return {"bilm": checkpoints.BILM}


ELMO = Family(
    name="elmo",
    config=ElmoConfig,
    model="bert_tf.models.elmo.model:Elmo",
    # The biLM without its softmax, as published (13.6M, 28.0M, 93.6M), and the four weights of the mix. 5.5B, named
    # after its corpus, has the shape of the original.
    sizes={
        "elmo_small": _size(1024, 128, 1, 13_593_316),
        "elmo_medium": _size(2048, 256, 1, 28_027_748),
        "elmo_original": _size(4096, 512, 2, 93_600_868),
        "elmo_5_5b": _size(4096, 512, 2, 93_600_868),
    },
    checkpoints=_checkpoints,
    objective="bidirectional_lm",
    # Peters et al. give the vectors to the model of the task; a linear layer on their mean is the smallest such model.
    heads=lambda config: {"classification": TaskHead("mean", dropout=0.5), "tagging": TaskHead("tokens", dropout=0.5)},
)


@dataclasses.dataclass(frozen=True)
class TransformerBiLMConfig(StackConfig):
    """The settings of two one-directional transformers whose outputs are concatenated.

    Args:
        hidden_size: H, the width of both directions together; each has H / 2, as has the token table.
        num_layers: L, in each direction.
        num_heads: of each direction.
        intermediate_size: I, of each direction.
        max_positions: rows of the position table: the longest text.
        others: as `StackConfig`.

    Raises:
        ConfigError: as `StackConfig`; half of `hidden_size` cannot be divided among the heads.

    Example:
        TransformerBiLMConfig(100, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64, max_positions=64)
    """

    has_directions: ClassVar[bool] = True

    max_positions: Positions = 512
    layer_norm_epsilon: Positive = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % (2 * self.num_heads):
            raise ConfigError(
                f"hidden_size={self.hidden_size} is of both directions together; it must be a multiple of 2 * num_heads, "
                f"{2 * self.num_heads}"
            )

    @property
    def direction_size(self) -> int:
        """H / 2, the width of one direction."""
        return self.hidden_size // 2


TRANSFORMER_BILM = Family(
    name="transformer_bilm",
    config=TransformerBiLMConfig,
    model="bert_tf.models.elmo.model:TransformerBiLM",
    objective="bidirectional_lm",
)
