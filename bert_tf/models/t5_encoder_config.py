"""The settings of one stack of T5's layers, and the record of T5's encoder alone. No Keras is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.encoder_config import Activation, Layers, ModelConfig, Positive, Rate, Width
from bert_tf.models.family import Family
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class T5StackConfig(ModelConfig):
    """The settings of T5's encoder alone, or of a decoder with T5's layers.

    Args:
        vocabulary_size: V, rows of the token table.
        hidden_size: H.
        num_layers: L.
        num_heads: attention heads.
        head_size: d; num_heads * d need not be H.
        intermediate_size: I, the width inside the feed-forward network, of each half where it is gated.
        activation: of the feed-forward network: "relu" (T5 1.0), "gelu_tanh" (T5 1.1, mT5, ByT5).
        gated: whether the feed-forward network is gated: T5 1.1, mT5, ByT5.
        dropout: on embeddings, on every branch, on attention probabilities, inside the feed-forward networks and on
            the result.
        layer_norm_epsilon: added to the mean square.
        num_buckets: of the relative positions, of both directions together; see `RelativePositionBias`.
        max_distance: of the relative positions: from there on all distances count as one.
    """

    num_layers: Layers
    num_heads: Width
    head_size: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    activation: Activation = "relu"
    gated: bool = False
    dropout: Rate = 0.1
    layer_norm_epsilon: Positive = 1e-6
    num_buckets: Annotated[int, Range(at_least=4, at_most=65_536)] = 32
    max_distance: Annotated[int, Range(at_least=4, at_most=1 << 24)] = 128

    @property
    def initializer_range(self):
        """Of keys, values and the first kernels of the feed-forward networks; heads of tasks read it, too."""
        return self.hidden_size**-0.5


@dataclasses.dataclass(frozen=True)
class T5EncoderConfig(T5StackConfig):
    """The settings of T5's encoder without its decoder.

    Example:
        T5EncoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)
    """

    def check_masked_lm(self):
        # Logits with a token table of unit variance would begin far from even, at 38 nats for 1,000 tokens.
        raise ConfigError(
            "model.family=t5_encoder has no masked LM: pretrain model.family=t5 with objective.name=denoising, and fine-tune "
            "from that run; tasks that write no text take its encoder"
        )


def encoder_alone(config):
    """The `T5EncoderConfig` of the encoder of a `T5Config`."""
    names = (field.name for field in dataclasses.fields(T5EncoderConfig))
    return T5EncoderConfig(**{name: getattr(config, name) for name in names})


def _heads(config):
    """No token stands for the text: a head of texts reads the mean of all (Ni et al. 2022, "Sentence-T5")."""
    return {"classification": TaskHead("mean")}


T5_ENCODER = Family(
    name="t5_encoder",
    config=T5EncoderConfig,
    model="bert_tf.models.t5_encoder:T5Encoder",
    checkpoints={"hf": "bert_tf.models.t5_encoder:HF"},
    heads=_heads,
)
