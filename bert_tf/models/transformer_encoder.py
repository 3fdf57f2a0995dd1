"""The encoder of a transformer: a `Stack`, called on the inputs of an encoder, and a pooler."""

from typing import Any

import keras

from bert_tf.backend import Dense, initializer
from bert_tf.layers import AttentionMask, Pooler
from bert_tf.layers.internals import is_recording
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import ContextLayers, Stack, StackModel, block_settings, token_embeddings, transformer_blocks
from bert_tf.types import Config, Function, Options, Policy, Tensor, Tensors


class TransformerEncoder(StackModel, Encoder):
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

    @staticmethod
    def make_pooler(config: Config, dtype: Policy) -> Function:
        """A function from the sequence output and the inputs to the pooled output: by default BERT's tanh layer."""
        pooler = Pooler(config.hidden_size, "tanh", config.initializer_range, dtype=dtype, name="pooler")
        return lambda x, inputs: pooler(x)

    @staticmethod
    def make_inputs(config: Config, dtype: Policy, **arguments: Options) -> Tensors:
        return encoder_inputs()

    @property
    def shared_embeddings(self) -> keras.Layer | None:
        embeddings = self._stack.embeddings
        return None if embeddings.max_positions is None else embeddings

    def outputs_at(self, inputs: Tensors, positions: Tensor, training: bool = False) -> Tensors:
        if is_recording():  # of all positions
            return Encoder.outputs_at(self, inputs, positions, training)
        return super().outputs_at(inputs, positions, training)


def encoder_stack(
    config: Config, dtype: Policy, projection_range: Any = None, blocks: Any = None, **embeddings: Options
) -> Stack:
    """The `Stack` of BERT or of a family that differs from it in these arguments.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        projection_range: None, or the `initializer_range` of the kernel of a linear layer "embedding_projection" from E to H
            (Lan et al. 2019, section 3.1).
        blocks: list of blocks; None for one of BERT's a layer.
        embeddings: of `Embeddings`, such as `num_segments`, `padding_id` (RoBERTa), and `size` where it is not H.
    """
    return Stack(
        embeddings=token_embeddings(
            config,
            dtype,
            max_positions=config.max_positions,
            layer_norm_epsilon=config.layer_norm_epsilon,
            **embeddings,
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
