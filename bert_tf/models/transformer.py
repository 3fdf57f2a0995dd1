"""What BERT and the families with its layers share: the stack of layers and the functional model."""

import keras
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import AttentionMask, Embeddings, Pooler, TransformerBlock
from bert_tf.models.encoder import Encoder, encoder_inputs


class TransformerEncoder(Encoder):
    """The base of BERT and the families with its layers: a family says what it does otherwise.

    It sets `config_class` and `family`, and overrides those of the `make_` functions, or `connect`,
    in which it differs. What its configuration has no field for, it has not: segments, say, or
    embeddings of another width.

    Args:
        config: an instance of `config_class`.
        pooler: whether there is a `pooled_output`; None for what the family has by default.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
        embeddings: another encoder's embeddings layer, whose variables this one then uses as well,
            of the sizes of `config`. None makes new ones. Not kept when the encoder is saved alone.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None = the global one.
        name: of the model; None for the family's.

    Raises:
        ConfigError: `embeddings` of other sizes.
    """

    family = None
    default_pooler = True

    def __init__(
        self,
        config,
        pooler=None,
        output_hidden_states=False,
        output_attention_scores=False,
        embeddings=None,
        dtype=None,
        name=None,
        **kwargs,
    ):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        wanted = {
            "pooler": self.default_pooler if pooler is None else pooler,
            "output_hidden_states": output_hidden_states,
            "output_attention_scores": output_attention_scores,
        }
        own = self.make_embeddings(config, policy)  # makes no variables
        if embeddings is not None:
            _check_shared(embeddings, own, config)
        inputs = encoder_inputs()
        inputs["output_positions"] = keras.Input((None,), dtype="int32", optional=True, name="output_positions")
        hidden_states, attention_scores = self.connect(inputs, embeddings or own, config, policy, output_attention_scores)
        outputs = {"sequence_output": hidden_states[-1]}
        if wanted["pooler"]:
            outputs["pooled_output"] = self.make_pooler(config, policy)(hidden_states[-1])
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if output_attention_scores:
            outputs["attention_scores"] = attention_scores
        super().__init__(config, inputs, outputs, dtype=policy, name=name or self.family, **wanted, **kwargs)

    def outputs_at(self, inputs, positions, training=False):
        """As `Encoder.outputs_at`, with as little work as it takes.

        The last layer's queries and all that follows them are computed at these positions only: the
        same numbers, and for a twentieth of the positions, two thirds less work in that layer.
        """
        if not self.pooler:
            outputs = self(inputs | {"output_positions": positions}, training=training)
            return {"sequence_output": outputs["sequence_output"]}
        positions = ops.pad(positions, [(0, 0), (1, 0)])  # the pooler reads the first vector
        outputs = self(inputs | {"output_positions": positions}, training=training)
        return {"sequence_output": outputs["sequence_output"][:, 1:], "pooled_output": outputs["pooled_output"]}

    @staticmethod
    def make_embeddings(config, dtype):
        return Embeddings(
            vocabulary_size=config.vocabulary_size,
            size=getattr(config, "embedding_size", config.hidden_size),
            max_positions=config.max_positions,
            num_segments=getattr(config, "num_segments", 0),
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            initializer_range=config.initializer_range,
            padding_id=getattr(config, "padding_id", None),
            dtype=dtype,
            name="embeddings",
        )

    @staticmethod
    def make_projection(config, dtype):
        """The layer between embeddings and blocks, from [B, S, E] to [B, S, H]; None for none."""
        return None

    @staticmethod
    def make_blocks(config, dtype):
        """Layers from ([B, S, H], attention mask) to [B, S, H], in the order of their calls.

        One that stands there several times shares its weights. The last also takes `positions`.
        """
        return [transformer_block(config, dtype, f"transformer_layer_{i}") for i in range(config.num_layers)]

    @staticmethod
    def make_pooler(config, dtype):
        """The layer from [B, S, H] to [B, H]."""
        return Pooler(
            size=config.hidden_size,
            activation="tanh",
            initializer_range=config.initializer_range,
            dtype=dtype,
            name="pooler",
        )

    @classmethod
    def connect(cls, inputs, embeddings, config, dtype, return_attention_scores):
        """Joins the layers on `encoder_inputs()`.

        Returns:
            A pair: list of the [B, S, H] that enters the first block and that leaves each; list of
            the blocks' attention probabilities, empty where they are not asked for.
        """
        mask = AttentionMask(dtype=dtype, name="attention_mask")(
            inputs["token_ids"],
            padding_mask=inputs["padding_mask"],
            sequence_ids=inputs["sequence_ids"],
        )
        x = embeddings(
            inputs["token_ids"],
            segment_ids=inputs["segment_ids"],
            position_ids=inputs["position_ids"],
        )
        projection = cls.make_projection(config, dtype)
        if projection is not None:
            x = projection(x)
        blocks = cls.make_blocks(config, dtype)
        return cls.run(blocks, x, lambda i: (mask,), inputs["output_positions"], return_attention_scores)

    @staticmethod
    def run(blocks, x, context, positions, return_attention_scores):
        """Calls the blocks one after the other, block i with what `context(i)` returns, the last at `positions`."""
        hidden_states, attention_scores = [x], []
        for i, block in enumerate(blocks):
            where = {"positions": positions} if i == len(blocks) - 1 else {}
            x = block(x, *context(i), return_attention_scores=return_attention_scores, **where)
            if return_attention_scores:
                x, scores = x
                attention_scores.append(scores)
            hidden_states.append(x)
        return hidden_states, attention_scores


def _check_shared(embeddings, made, config):
    names = ["vocabulary_size", "size", "max_positions", "num_segments"]
    if hasattr(config, "padding_id"):  # others take positions as the shared embeddings count them
        names.append("padding_id")
    for name in names:
        theirs, ours = getattr(embeddings, name), getattr(made, name)
        if theirs != ours:
            name = "embedding_size" if name == "size" else name
            raise ConfigError(f"the shared embeddings have {name}={theirs}, the configuration says {ours}")


def transformer_block(config, dtype, name):
    """A `TransformerBlock` with the numbers of a family's configuration."""
    return TransformerBlock(
        num_heads=config.num_heads,
        intermediate_size=config.intermediate_size,
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
        dtype=dtype,
        name=name,
    )
