"""The settings and the record of T5's decoder-only models. No Keras is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.models.encoder_config import Activation, Layers, ModelConfig, Positive, Rate, Width
from bert_tf.models.family import ExpectedShapes, Family


@dataclasses.dataclass(frozen=True)
class T5DecoderConfig(ModelConfig):
    """The settings of a decoder with T5's layers: "language model" and "prefix LM" in table 2 of the T5 paper.

    Args:
        vocabulary_size: V, rows of the token table, which is the output layer too, with x / sqrt(H) before it.
        hidden_size: H.
        num_layers: L.
        num_heads: attention heads.
        head_size: d; num_heads * d need not be H.
        intermediate_size: I, the width inside the feed-forward network, of each half where it is gated.
        prefix: whether the tokens of a source see each other in both directions ("prefix LM"), in training and, for
            the prompt, in generation. False: a token sees itself and the tokens before it ("language model").
        activation: of the feed-forward network.
        gated: whether the feed-forward network is gated, as T5 1.1's.
        dropout: on embeddings, on every branch, on attention probabilities, inside the feed-forward networks and on
            the result.
        layer_norm_epsilon: added to the mean square.
        num_buckets, max_distance: of the relative positions; see `RelativePositionBias`.

    Example:
        T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
    """

    num_layers: Layers
    num_heads: Width
    head_size: Width
    intermediate_size: Annotated[int, Range(at_least=1, at_most=1 << 20)]
    prefix: bool = False
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


def expected_shapes(config):
    """The `ExpectedShapes` of a configuration."""
    hidden, heads = config.hidden_size, config.num_heads * config.head_size
    inner = "gate" if config.gated else "intermediate"
    tables = {"embeddings/token_embeddings": ("vocabulary_size, hidden_size", (config.vocabulary_size, hidden))}
    layer = {
        f"{inner}/kernel": ("hidden_size, intermediate_size", (hidden, config.intermediate_size)),
        "attention/query/kernel": ("hidden_size, num_heads, head_size", (hidden, heads)),
    }
    return ExpectedShapes(tables, layer, config.num_layers)


T5_DECODER = Family(
    name="t5_decoder",
    config=T5DecoderConfig,
    model="bert_tf.models.t5_decoder:T5Decoder",
    objective="denoising",
    expected_shapes=expected_shapes,
    kind="decoder",
)
