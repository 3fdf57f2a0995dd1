"""Two one-directional transformers, concatenated: the transformer biLM of Peters et al. 2018 ("Dissecting Contextual
Word Embeddings: Architecture and Representation", arXiv:1808.08949)."""

import keras
from keras import ops

from bert_tf.layers import AttentionMask, EndsOfDirections
from bert_tf.models.backbone import policy
from bert_tf.models.decoder import decoder_embeddings
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import ContextLayers, Stack, block_settings, transformer_blocks
from bert_tf.models.transformer_bilm_config import TransformerBiLMConfig


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBiLM(Encoder):
    """A left-to-right and a right-to-left transformer above one table of embeddings, ELMo's way.

    Neither direction reads the other's outputs; only the result holds both. The layers are GPT-1's, which are BERT's
    with attention to one side, so that models differ in direction alone. (The paper's have sinusoidal positions and
    read characters; its weights are not read.) Padding must be on the right.

    Args:
        config: a `TransformerBiLMConfig`.
        pooler: whether there is a `pooled_output`: the forward half of the last real token and the backward half of the
            first one. It has no weights.
        output_hidden_states: whether the result holds all layers' outputs.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model; None for that of its family.

    Call arguments, results: see `Encoder`. `segment_ids` are not read; `hidden_states` begin with the embeddings, twice
    side by side.

    Raises:
        ConfigError: when called: more tokens than `config.max_positions`, without `position_ids`.
        DataError: when called: see `Backbone`.

    Example:
        config = TransformerBiLMConfig(100, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64)
        TransformerBiLM(config)({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 32]
    """

    config_class = TransformerBiLMConfig

    def __init__(self, config, pooler=True, output_hidden_states=False, dtype=None, name=None, **kwargs):
        dtype = policy(dtype)

        # === Layers ===
        embeddings, settings = decoder_embeddings(config, config.direction_size, dtype), block_settings(config)
        stacks = [
            Stack(
                embeddings=embeddings,
                blocks=transformer_blocks(settings, config.num_layers, dtype, f"{direction}_layer"),
                contexts=ContextLayers(
                    AttentionMask(causal=True, backwards=backwards, dtype=dtype, name=f"{direction}_mask")
                ),
            )
            for direction, backwards in (("forward", False), ("backward", True))
        ]

        # === Functional model ===
        inputs = encoder_inputs()
        hidden_states = _hidden_states(stacks, inputs)
        outputs = {"sequence_output": hidden_states[-1]}
        if pooler:
            ends = EndsOfDirections(dtype=dtype, name="pooler")
            outputs["pooled_output"] = ends(hidden_states[-1], padding_mask=inputs["padding_mask"])
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states

        # === Configuration ===
        arguments = {"pooler": pooler, "output_hidden_states": output_hidden_states}
        super().__init__(config, inputs, outputs, dtype, name, longest=config.max_positions, **arguments, **kwargs)
        self._directions = stacks

    def blocks(self):
        return [block for pair in zip(*(stack.blocks for stack in self._directions)) for block in pair]

    def outputs_of_layers(self, inputs, training=False):
        """The outputs of all layers, as of `Elmo`, and None, because there is no state.

        Example:
            hidden_states, _ = model.outputs_of_layers({"token_ids": np.array([[5, 6, 7]])})
        """
        return _hidden_states(self._directions, self.complete(inputs), training), None


def _hidden_states(stacks, inputs, training=None):
    x = stacks[0].embed(inputs, training)
    directions = [stack.run(x, inputs, training=training).hidden_states for stack in stacks]
    return [ops.concatenate(pair, axis=-1) for pair in zip(*directions)]
