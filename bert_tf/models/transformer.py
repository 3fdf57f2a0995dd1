"""What BERT and the families with its layers share: the stack of layers and the functional model."""

import keras
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import AttentionMask, Embeddings, Pooler, TransformerBlock
from bert_tf.models.encoder import Encoder, as_tensor, encoder_inputs


class TransformerEncoder(Encoder):
    """The base of BERT and the families with its layers: a family says what it does otherwise.

    It sets `config_class` and `family`, and overrides those of the `make_` functions, or `join`,
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
        encode = self.join(embeddings or own, config, policy)
        pooler_layer = self.make_pooler(config, policy) if wanted["pooler"] else None
        inputs = encoder_inputs()
        hidden_states, attention_scores = encode(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": hidden_states[-1]}
        if wanted["pooler"]:
            outputs["pooled_output"] = pooler_layer(hidden_states[-1])
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if output_attention_scores:
            outputs["attention_scores"] = attention_scores
        super().__init__(config, inputs, outputs, dtype=policy, name=name or self.family, **wanted, **kwargs)
        # Functions: Keras would count layers that are attributes a second time.
        self._encode, self._pool = encode, lambda x: pooler_layer(x)

    def outputs_at(self, inputs, positions, training=False):
        """As `Encoder.outputs_at`, without the work that nobody reads.

        The last layer is computed at these positions only, but for the keys and values (ModernBERT: but
        for its attention): the same numbers with a sixth less work in four layers, where the positions
        are few. In training a position that is asked for twice is dropped from twice.
        """
        positions = as_tensor(positions)
        if self.pooler:  # which reads the first vector
            positions = ops.pad(positions, [(0, 0), (1, 0)])
        x = self._encode(self.complete(inputs), positions=positions, training=training)[0][-1]
        return {"sequence_output": x[:, 1:], "pooled_output": self._pool(x)} if self.pooler else {"sequence_output": x}

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
    def join(cls, embeddings, config, dtype):
        """Makes the layers but for the pooler.

        Returns:
            A function of the encoder's inputs, by name, and on request `positions` int [B, P], where the
            last layer is wanted; `return_attention_scores`; `training`. It works on symbolic inputs and
            on tensors, and returns a pair: list of the [B, S, H] that enters the first block and that
            leaves each, the last [B, P, H] with positions; list of the blocks' attention probabilities,
            empty where they are not asked for.
        """
        mask_layer = AttentionMask(dtype=dtype, name="attention_mask")
        projection, blocks = cls.make_projection(config, dtype), cls.make_blocks(config, dtype)

        def encode(inputs, positions=None, return_attention_scores=False, training=None):
            seen = {name: inputs[name] for name in ("padding_mask", "sequence_ids")}
            mask = mask_layer(inputs["token_ids"], **seen)
            places = {name: inputs[name] for name in ("segment_ids", "position_ids")}
            x = embeddings(inputs["token_ids"], **places, training=training)
            if projection is not None:
                x = projection(x)
            return cls.run(blocks, x, lambda i: (mask,), positions, return_attention_scores, training)

        return encode

    @staticmethod
    def run(blocks, x, context, positions, return_attention_scores, training):
        """Calls the blocks one after the other, block i with what `context(i)` returns, the last at `positions`."""
        hidden_states, attention_scores = [x], []
        options = {"return_attention_scores": return_attention_scores, "training": training}
        for i, block in enumerate(blocks):
            if positions is not None and i == len(blocks) - 1:
                options["positions"] = positions
            x = block(x, *context(i), **options)
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
