"""The encoder that BERT, RoBERTa, ALBERT, ELECTRA, SpanBERT and DistilBERT build with arguments of their own.

`transformer_layers` makes the layers, `TransformerLayers.encode` calls them, `TransformerEncoder` is the model.
"""

import dataclasses
from collections.abc import Callable

import keras
from keras import ops

from bert_tf.backend import Dense
from bert_tf.errors import ConfigError
from bert_tf.layers import AttentionMask, Embeddings, Pooler, TransformerBlock
from bert_tf.layers.internals import is_recording
from bert_tf.models.backbone import as_tensor
from bert_tf.models.encoder import Encoder, encoder_inputs


class TransformerEncoder(Encoder):
    """A model of embeddings, layers that are called one after the other, and a pooler.

    Args:
        config: an instance of the family's configuration.
        layers: a `TransformerLayers`, or another with its method `encode` and its attributes `embeddings`, `blocks`
            and `pooler`.
        dtype: the dtype policy of the layers.
        name: of the model.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
    """

    def __init__(
        self, config, layers, dtype, name, output_hidden_states=False, output_attention_scores=False, **arguments
    ):
        # === Functional model ===
        inputs = encoder_inputs()
        hidden_states, attention_scores = layers.encode(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": hidden_states[-1]}
        if layers.pooler is not None:
            outputs["pooled_output"] = layers.pooler(hidden_states[-1])
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if output_attention_scores:
            outputs["attention_scores"] = attention_scores

        # === Configuration ===
        super().__init__(
            config,
            inputs,
            outputs,
            dtype=dtype,
            name=name,
            longest=layers.embeddings.max_positions,
            pooler=layers.pooler is not None,
            output_hidden_states=output_hidden_states,
            output_attention_scores=output_attention_scores,
            **arguments,
        )
        self._transformer_layers = layers  # not a Keras layer, which would be counted a second time

    def blocks(self):
        return list(self._transformer_layers.blocks)

    @property
    def shared_embeddings(self):
        embeddings = self._transformer_layers.embeddings
        return None if embeddings.max_positions is None else embeddings

    def outputs_at(self, inputs, positions, training=False):
        """As `Encoder.outputs_at`, but evaluates the last block only at `positions`.

        Its keys and values (ModernBERT: its whole attention) are computed at all positions. The values are the
        same; a 4-layer model needs about one sixth less computation when P is much smaller than S. In training,
        a position that is listed twice gets two independent dropout masks.
        """
        if is_recording():
            return super().outputs_at(inputs, positions, training)
        layers, inputs, positions = self._transformer_layers, self.complete(inputs), as_tensor(positions)
        if not self.pooler:
            return {"sequence_output": layers.encode(inputs, positions, training=training)[0][-1]}
        positions = ops.pad(positions, [(0, 0), (1, 0)])  # the pooler reads the first vector
        x = layers.encode(inputs, positions, training=training)[0][-1]
        return {"sequence_output": x[:, 1:], "pooled_output": layers.pooler(x)}


@dataclasses.dataclass(frozen=True)
class TransformerLayers:
    """The layers of BERT, in the order of their calls; see `transformer_layers`.

    Args:
        mask: from token ids, padding mask and sequence ids to the attention mask.
        embeddings: from ids [B, S] to [B, S, E].
        projection: from [B, S, E] to [B, S, H]; None where E is H.
        blocks: from ([B, S, H], attention mask) to [B, S, H], bottom first. One that is in the list several
            times shares its weights. The last also takes `positions`.
        pooler: from [B, S, H] to [B, H]; None for none.
    """

    mask: keras.Layer
    embeddings: keras.Layer
    projection: keras.Layer | None
    blocks: list
    pooler: Callable | None

    def encode(self, inputs, positions=None, return_attention_scores=False, training=None):
        """Calls the layers, but for the pooler, on symbolic inputs or on tensors.

        Args:
            inputs: dict of all inputs of the encoder, None for absent ones.
            positions: int [B, P], where the last layer is computed; None for everywhere.
            return_attention_scores: whether the second result is wanted.
            training: whether dropout is active.

        Returns:
            A pair: list of the [B, S, H] that enters the first block and that leaves each, the last [B, P, H]
            with `positions`; list of the blocks' attention probabilities, empty where they are not wanted.
        """
        token_ids = inputs["token_ids"]
        mask = self.mask(token_ids, padding_mask=inputs["padding_mask"], sequence_ids=inputs["sequence_ids"])
        numbers = {"segment_ids": inputs["segment_ids"], "position_ids": inputs["position_ids"]}
        x = self.embeddings(token_ids, **numbers, training=training)
        if self.projection is not None:
            x = self.projection(x)
        contexts = [(mask,) for _ in self.blocks]
        return run_blocks(self.blocks, x, contexts, positions, return_attention_scores, training)


def run_blocks(blocks, x, contexts, positions, return_attention_scores, training):
    """Calls the blocks one after the other, each with its own further inputs, the last at `positions`.

    Arguments and results are those of `TransformerLayers.encode`; `contexts` is a list of tuples, one a block.
    """
    hidden_states, attention_scores = [x], []
    options = {"return_attention_scores": return_attention_scores, "training": training}
    for i, (block, context) in enumerate(zip(blocks, contexts)):
        if positions is not None and i == len(blocks) - 1:
            options["positions"] = positions
        x = block(x, *context, **options)
        if return_attention_scores:
            x, scores = x
            attention_scores.append(scores)
        hidden_states.append(x)
    return hidden_states, attention_scores


def transformer_layers(
    config,
    dtype,
    pooler,
    num_segments=0,
    padding_id=None,
    embedding_size=None,
    projection=None,
    blocks=None,
    embeddings=None,
):
    """Makes the layers of BERT or of a family that differs from it in these arguments.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        pooler: None, or a function from (config, dtype) to what makes [B, H] of [B, S, H]: `bert_pooler`.
        num_segments: rows of the segment table; 0 for no table.
        padding_id: positions are counted from the row after it, as RoBERTa does; None for counting from 0.
        embedding_size: E, the width of the tables; None for H.
        projection: None, or the initializer of the kernel of a linear layer "embedding_projection" from E to H
            (Lan et al. 2019, section 3.1).
        blocks: function from (config, dtype) to the list of blocks; None for one `transformer_block` a layer.
        embeddings: another encoder's embeddings, of the same sizes, in place of new ones.

    Raises:
        ConfigError: `embeddings` of other sizes.
    """
    own = Embeddings(
        vocabulary_size=config.vocabulary_size,
        size=embedding_size or config.hidden_size,
        max_positions=config.max_positions,
        num_segments=num_segments,
        dropout=config.dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
        padding_id=padding_id,
        dtype=dtype,
        name="embeddings",
    )
    if embeddings is not None:
        _check_shared(embeddings, own)
    return TransformerLayers(
        mask=AttentionMask(dtype=dtype, name="attention_mask"),
        embeddings=embeddings or own,
        projection=projection
        and Dense(config.hidden_size, kernel_initializer=projection, dtype=dtype, name="embedding_projection"),
        blocks=(blocks or transformer_blocks)(config, dtype),
        pooler=pooler and pooler(config, dtype),
    )


def _check_shared(embeddings, own):
    for name in ("vocabulary_size", "size", "max_positions", "num_segments"):
        theirs, ours = getattr(embeddings, name), getattr(own, name)
        if theirs != ours:
            name = "embedding_size" if name == "size" else name
            raise ConfigError(f"the shared embeddings have {name}={theirs}, the configuration says {ours}")


def transformer_block(config, dtype, name, **others):
    """BERT's transformer layer, or another one by further arguments of `TransformerBlock`, which come first."""
    arguments = {
        "num_heads": config.num_heads,
        "intermediate_size": config.intermediate_size,
        "activation": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "initializer_range": config.initializer_range,
    }
    return TransformerBlock(**arguments | others, dtype=dtype, name=name)


def transformer_blocks(config, dtype):
    """One `transformer_block` for each layer, bottom first."""
    return [transformer_block(config, dtype, f"transformer_layer_{i}") for i in range(config.num_layers)]


def bert_pooler(config, dtype):
    """BERT's pooler: a tanh layer on the first vector."""
    return Pooler(config.hidden_size, "tanh", config.initializer_range, dtype=dtype, name="pooler")
