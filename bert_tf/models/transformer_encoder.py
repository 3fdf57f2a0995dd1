"""The encoder of a transformer: a `Stack`, called on the inputs of an encoder, and a pooler."""

import dataclasses

from keras import ops

from bert_tf.backend import Dense, initializer
from bert_tf.errors import ConfigError
from bert_tf.layers import AttentionMask, Embeddings, Pooler
from bert_tf.layers.internals import is_recording
from bert_tf.models.backbone import as_tensor, policy
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import ContextLayers, Stack, block_settings, transformer_blocks


class TransformerEncoder(Encoder):
    """The base of a bidirectional transformer. A family says with `make_stack` what it consists of.

    Args:
        config: an instance of `config_class`.
        pooler: whether there is a `pooled_output`; None for what the published models have.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
        embeddings: another encoder's embeddings layer of the same sizes, whose variables this one shares; None
            for new ones. Not kept when the encoder is saved alone.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None for the global one.
        name: of the model; None for that of its family.

    Call arguments:
        inputs: dict of [B, S] tensors: `token_ids` int32, and optionally `segment_ids` int32 (default: zeros),
            `padding_mask` bool (all real), `sequence_ids` int32 of packed texts (one text each) and
            `position_ids` int32 (0..S-1).
        training: whether dropout is active.

    Returns:
        dict: `sequence_output` [B, S, H]; `pooled_output` [B, H]; on request `hidden_states`, a
        list of num_layers + 1 [B, S, H] with the embeddings first, and `attention_scores`, a
        list of num_layers float32 [B, n, S, S] (probabilities, before dropout). All others are in
        the compute dtype. Values at padding have no meaning and no effect.

    Raises:
        ConfigError: S is above `max_positions` while there are no `position_ids`; `embeddings` of other sizes.
        DataError: `token_ids` are missing, or there is an input of another name.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["pooled_output"]  # [1, 16]
    """

    #: Whether the published models have a `pooled_output`.
    published_pooler = True

    @staticmethod
    def make_stack(config, dtype):
        """The `Stack` of a configuration; a family defines it."""
        raise NotImplementedError("a TransformerEncoder must define make_stack(config, dtype)")

    @staticmethod
    def make_pooler(config, dtype):
        """What makes the pooled output [B, H] of the sequence output: by default BERT's tanh layer on the first vector."""
        return Pooler(config.hidden_size, "tanh", config.initializer_range, dtype=dtype, name="pooler")

    def __init__(
        self,
        config,
        pooler=None,
        output_hidden_states=False,
        output_attention_scores=False,
        embeddings=None,
        dtype=None,
        name=None,
        **arguments,
    ):
        # === Layers ===
        dtype = policy(dtype)
        stack = self.make_stack(config, dtype)
        if embeddings is not None:
            _check_shared(embeddings, stack.embeddings)
            stack = dataclasses.replace(stack, embeddings=embeddings)
        pooler = self.published_pooler if pooler is None else pooler
        pool = self.make_pooler(config, dtype) if pooler else None

        # === Functional model ===
        inputs = encoder_inputs()
        found = stack(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": found.last}
        if pooler:
            outputs["pooled_output"] = pool(found.last)
        if output_hidden_states:
            outputs["hidden_states"] = found.hidden_states
        if output_attention_scores:
            outputs["attention_scores"] = found.attention_scores

        # === Configuration ===
        super().__init__(
            config,
            inputs,
            outputs,
            dtype=dtype,
            name=name,
            longest=stack.embeddings.max_positions,
            pooler=pooler,
            output_hidden_states=output_hidden_states,
            output_attention_scores=output_attention_scores,
            **arguments,
        )
        # Neither is a Keras layer, which would be counted a second time.
        self._stack, self._pooled = stack, lambda x: pool(x)

    def blocks(self):
        return list(self._stack.blocks)

    @property
    def shared_embeddings(self):
        embeddings = self._stack.embeddings
        return None if embeddings.max_positions is None else embeddings

    def outputs_at(self, inputs, positions, training=False):
        """As `Encoder.outputs_at`, but evaluates the last block only at `positions`.

        Its keys and values (ModernBERT: its whole attention) are computed at all positions. The values are the
        same; a 4-layer model needs about one sixth less computation when P is much smaller than S. In training,
        a position that is listed twice gets two independent dropout masks.
        """
        if is_recording():
            return super().outputs_at(inputs, positions, training)
        inputs, positions = self.standardize_inputs(inputs), as_tensor(positions)
        if not self.pooler:
            return {"sequence_output": self._stack(inputs, positions, training=training).last}
        positions = ops.pad(positions, [(0, 0), (1, 0)])  # the pooler reads the first vector
        x = self._stack(inputs, positions, training=training).last
        return {"sequence_output": x[:, 1:], "pooled_output": self._pooled(x)}


def encoder_stack(
    config, dtype, num_segments=0, padding_id=None, embedding_size=None, projection_range=None, blocks=None
):
    """The `Stack` of BERT or of a family that differs from it in these arguments.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        num_segments: rows of the segment table; 0 for no table.
        padding_id: positions are counted from the row after it, as RoBERTa does; None for counting from 0.
        embedding_size: E, the width of the tables; None for H.
        projection_range: None, or the `initializer_range` of the kernel of a linear layer "embedding_projection" from E to H
            (Lan et al. 2019, section 3.1).
        blocks: list of blocks; None for one of BERT's a layer.
    """
    return Stack(
        embeddings=Embeddings(
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
        ),
        projection=projection_range
        and Dense(
            config.hidden_size,
            kernel_initializer=initializer(projection_range),
            dtype=dtype,
            name="embedding_projection",
        ),
        blocks=blocks or transformer_blocks(block_settings(config), config.num_layers, dtype),
        contexts=ContextLayers(AttentionMask(dtype=dtype, name="attention_mask")),
    )


def _check_shared(embeddings, own):
    for name in ("vocabulary_size", "size", "max_positions", "num_segments"):
        shared, configured = getattr(embeddings, name), getattr(own, name)
        if shared != configured:
            name = "embedding_size" if name == "size" else name
            raise ConfigError(f"the shared embeddings have {name}={shared}, the configuration says {configured}")
