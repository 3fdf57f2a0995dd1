"""The settings and the record of the bidirectional LSTM. No Keras is imported; the model is in bilstm.py."""

import dataclasses

from bert_tf.errors import ConfigError
from bert_tf.models.encoder_config import Activation, Layers, ModelConfig, Positive, Rate, Width
from bert_tf.models.family import Family


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

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % 2:
            raise ConfigError(
                f"hidden_size={self.hidden_size} is odd; it is of both directions together, half of it each"
            )

    @property
    def intermediate_size(self):
        """The width of the gates of one direction, by which a precision is chosen."""
        return 2 * self.hidden_size


BILSTM = Family(name="bilstm", config=BiLstmConfig, model="bert_tf.models.bilstm:BiLstmEncoder")
