"""What every encoder has: five named inputs, and what tasks and objectives ask of it."""

from typing import Any

import keras

from bert_tf.layers import MaskedLMHead
from bert_tf.layers.parts import gather_positions
from bert_tf.models.backbone import Backbone, as_tensor, symbolic_inputs
from bert_tf.types import Options, Tensor, Tensors

#: The features an encoder reads; all but the first may be left out.
ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids")


class Encoder(Backbone):
    """The base of a family's encoder: a `Backbone` from token ids to `sequence_output` [B, S, H].

    Its inputs are those of `encoder_inputs()`, and may be more. Its outputs are `sequence_output`, and
    `pooled_output` [B, H] where it has a pooler.

    Tasks and objectives ask an encoder for `outputs_at`, `embedding_table`, `make_masked_lm_head` and `blocks`.
    The versions here are for any encoder; a family replaces those that it computes otherwise.

    Args:
        config: an instance of `config_class`.
        inputs, outputs, dtype, name, arguments: see `Backbone`.

    Raises:
        ConfigError: when called: sequences above `longest` without `position_ids`.
        DataError: when called: see `Backbone`.

    Example:
        class WordVectors(Encoder):
            config_class = ModelConfig

            def __init__(self, config, dtype=None, name="word_vectors", **kwargs):
                inputs, dtype = encoder_inputs(), policy(dtype)
                table = keras.layers.Embedding(config.vocabulary_size, config.hidden_size, dtype=dtype)
                outputs = {"sequence_output": table(inputs["token_ids"])}
                super().__init__(config, inputs, outputs, dtype=dtype, name=name, **kwargs)

        WordVectors(ModelConfig(100, 16)).outputs_at({"token_ids": np.array([[5, 6, 7]])}, np.array([[2]]))
    """

    structure = "encoder"

    def outputs_at(self, inputs: Tensors, positions: Tensor, training: bool = False) -> Tensors:
        """The outputs at some positions only, as heads read them.

        Args:
            inputs: dict of the encoder's inputs.
            positions: int32 [B, P], each in 0..S-1.
            training: whether dropout is active.

        Returns:
            dict: `sequence_output` float [B, P, H], the vectors at these positions; `pooled_output`
            [B, H] where the encoder has a pooler.
        """
        outputs = self(inputs, training=training)
        gathered = {"sequence_output": gather_positions(outputs["sequence_output"], as_tensor(positions))}
        return gathered | {name: outputs[name] for name in ("pooled_output",) if name in outputs}

    def blocks(self) -> list[keras.Layer]:
        """The layers between embeddings and output, bottom first: list of Keras layers, of any length.

        A layer that is in the list several times shares its weights. Empty for an encoder that does not say.
        """
        return []

    @property
    def shared_embeddings(self) -> keras.Layer | None:
        """The `Embeddings` layer, with a position table, that a generator can share; None for no such layer."""
        return None

    @property
    def embedding_table(self) -> Tensor:
        """The token table, a variable [V, E], to which an output layer is tied: of the layer "embeddings"."""
        return self.get_layer("embeddings").token_table

    def make_masked_lm_head(self, name: str = "masked_lm_head", **settings: Options) -> keras.Layer:
        """A new `MaskedLMHead` over this encoder's vocabulary, built.

        It has the encoder's activation and epsilon; families with another head give `settings`.
        """
        return self.make_token_head(MaskedLMHead, name, **settings)

    def make_token_head(self, head_class: type, name: str, **settings: Options) -> Any:
        """A new head of a class like `MaskedLMHead`, built, with this encoder's settings where others are not given."""
        config = self.config
        vocabulary_size, embedding_size = self.embedding_table.shape
        defaults = {
            "vocabulary_size": vocabulary_size,
            "embedding_size": embedding_size,
            "activation": config.activation,
            "layer_norm_epsilon": config.layer_norm_epsilon,
            "initializer_range": config.initializer_range,
        }
        head = head_class(**(defaults | settings), dtype=self.dtype_policy, name=name)
        head.build((None, None, config.hidden_size))
        return head


def encoder_inputs() -> Tensors:
    """The symbolic inputs of an encoder: [B, S] each, all but `token_ids` optional."""
    return symbolic_inputs(ENCODER_INPUTS)
