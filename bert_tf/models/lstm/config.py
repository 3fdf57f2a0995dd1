"""Settings, sizes and records of LSTMs. No Keras is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Layers, ModelConfig, Positive, Rate, Width
from bert_tf.models.task_heads import TaskHead

#: The words of IMDB's reviews, split at `\W+`, that adversarial_text keeps.
IMDB_WORDS = 86_934


@dataclasses.dataclass(frozen=True)
class LstmLMConfig(ModelConfig):
    """The settings of an LSTM language model.

    Args:
        vocabulary_size: V, rows of the token table and of the output layer.
        hidden_size: H, the width of the LSTMs.
        embedding_size: E, the width of the token table.
        num_layers: LSTMs, one on the other.
        tied: whether the output layer is the token table, which needs E = H.
        output_bias: whether an output layer of its own has a bias.
        forget_bias: is added to the forget gates, whose trained biases start from 0.
        embedding_dropout: on the token embeddings; the same numbers are dropped at all positions of a row.
        dropout: on the output of each LSTM.
        unroll: truncated backpropagation: a row is read in segments of so many tokens, the state goes from each to the
            next and the gradient does not (Dai and Le: 400). It changes training alone. null: the gradient goes through
            the row.
        embedding_initializer_range: standard deviation of the token table.
        activation: of the heads of tasks.
        layer_norm_epsilon: added to the variance of layer normalization, in the heads of tasks.
        initializer_range: standard deviation of the kernels in the heads of tasks.

    Raises:
        ConfigError: `tied` with E other than H.

    Example:
        LstmLMConfig(100, hidden_size=16, embedding_size=8)
    """

    embedding_size: Width = 512
    num_layers: Layers = 1
    tied: bool = False
    output_bias: bool = True
    forget_bias: float = 0.0
    embedding_dropout: Rate = 0.5
    dropout: Rate = 0.0
    unroll: Annotated[int | None, Range(at_least=1)] = None
    embedding_initializer_range: Positive = 1.0
    activation: Activation = "relu"
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tied and self.embedding_size != self.hidden_size:
            raise ConfigError(
                f"tied output layers are the token table: embedding_size={self.embedding_size} must be hidden_size="
                f"{self.hidden_size}; set tied=false, or the same size"
            )

    @property
    def intermediate_size(self) -> int:
        """The width of the gates, by which a precision is chosen."""
        return 4 * self.hidden_size


def _size(embedding_size):
    hidden, words = 1024, IMDB_WORDS
    config = LstmLMConfig(words, hidden_size=hidden, embedding_size=embedding_size)
    lstm = 4 * hidden * (embedding_size + hidden + 1)
    parameters = words * embedding_size + lstm + words * (hidden + 1)
    return Preset(config, parameters, parameters)


LSTM_LM = Family(
    name="lstm_lm",
    config=LstmLMConfig,
    model="bert_tf.models.lstm.model:LstmLM",
    # Dai and Le 2015, and the smaller table of adversarial_text, with the vocabulary of the latter. No
    # counts of parameters are published; these are the sums of the formulas.
    sizes={"lm_lstm": _size(512), "lm_lstm_adversarial_text": _size(256)},
    objective="causal_lm",
    structure="decoder",
    # A hidden layer of 512 with dropout of 0.5 (Dai and Le 2015); ReLU as in adversarial_text, which has 30 units.
    heads=lambda config: {"classification": TaskHead("pooled", activation="relu", dropout=0.5, width=512)},
)


@dataclasses.dataclass(frozen=True)
class BiLstmConfig(ModelConfig):
    """The settings of a bidirectional LSTM above a token table.

    Args:
        hidden_size: H, of both directions together; each has H / 2 units.
        embedding_size: E, the width of the token table.
        num_layers: each reads both directions of the one below it.
        dropout: on the token vectors and after each layer.
        activation: of the heads of tasks and of the masked LM head.
        layer_norm_epsilon: of the masked LM head.
        initializer_range: standard deviation of the truncated normal of table and heads. The LSTM has Keras's: Glorot
            uniform kernels, orthogonal recurrent kernels, a forget gate with the bias 1.
        others: as `ModelConfig`.

    Raises:
        ConfigError: as `ModelConfig`; also an odd `hidden_size`.

    Example:
        BiLstmConfig(vocabulary_size=8000, hidden_size=256, embedding_size=100)
    """

    embedding_size: Width
    num_layers: Layers = 1
    dropout: Rate = 0.1
    activation: Activation = "gelu_tanh"
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % 2:
            raise ConfigError(
                f"hidden_size={self.hidden_size} is odd; it is of both directions together, half of it each"
            )

    @property
    def intermediate_size(self) -> int:
        """The width of the gates of one direction, by which a precision is chosen."""
        return 2 * self.hidden_size


BILSTM = Family(name="bilstm", config=BiLstmConfig, model="bert_tf.models.lstm.model:BiLstmEncoder")
