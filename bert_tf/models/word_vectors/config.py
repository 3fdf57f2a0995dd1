"""The settings and the record of word vectors. No Keras is imported."""

import dataclasses

from bert_tf.models.family import Family
from bert_tf.models.model_config import Activation, ModelConfig, Positive, Rate


@dataclasses.dataclass(frozen=True)
class WordVectorsConfig(ModelConfig):
    """The settings of an encoder without context: a table of word vectors.

    Args:
        dropout: on the vectors.
        activation: of the heads of tasks and of the masked LM head.
        layer_norm_epsilon: of the masked LM head.
        initializer_range: standard deviation of the truncated normal of heads, and of a table that starts at random.
        others: as `ModelConfig`.

    Example:
        WordVectorsConfig(vocabulary_size=8000, hidden_size=100)
    """

    dropout: Rate = 0.0
    activation: Activation = "gelu_tanh"
    layer_norm_epsilon: Positive = 1e-12
    initializer_range: Positive = 0.02

    @property
    def intermediate_size(self) -> int:
        """The width by which a precision is chosen: there is no layer above the table."""
        return self.hidden_size


WORD_VECTORS = Family(
    name="word_vectors", config=WordVectorsConfig, model="bert_tf.models.word_vectors.model:WordVectorsEncoder"
)
