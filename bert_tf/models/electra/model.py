"""ELECTRA (Clark et al. 2020, arXiv:2003.10555), as google-research/electra `modeling.py` has it."""

import keras

from bert_tf.models.electra.config import ElectraConfig, check_position_table
from bert_tf.models.stack import Stack
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.types import Function, Model, Policy


@keras.saving.register_keras_serializable("bert_tf")
class ElectraEncoder(TransformerEncoder):
    """The encoder of a discriminator or of a generator.

    Args, call arguments, results, errors: as `TransformerEncoder`, with an `ElectraConfig`. The pooled output is the
    first token's vector as it is: there is no pooling layer. The first of the `hidden_states` is what enters the first
    layer: [B, S, H], after the linear layer.

    Example:
        config = ElectraConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32, embedding_size=8)
        ElectraEncoder(config)({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = ElectraConfig

    @staticmethod
    def make_stack(config: ElectraConfig, dtype: Policy) -> Stack:
        return encoder_stack(
            config,
            dtype,
            num_segments=config.num_segments,
            size=config.embedding_size,
            # Glorot: TensorFlow's default, which the original does not change here.
            projection_range="glorot_uniform" if config.embedding_size != config.hidden_size else None,
        )

    @staticmethod
    def make_pooler(config: ElectraConfig, dtype: Policy) -> Function:
        return lambda x, inputs: x[:, 0]


def make_generator(discriminator: Model, config: ElectraConfig) -> Model:
    """A generator that shares the discriminator's embeddings: the same variables, not copies.

    Token, position and segment tables and their layer norm are shared (Clark et al. 2020, section
    3.2). The paths of the generator's own variables begin with "generator/"; those of the discriminator
    keep the paths of a bare encoder, so that it can be taken out of a checkpoint alone.

    Args:
        discriminator: an encoder with `shared_embeddings`: ELECTRA's, BERT's, and those of the families with
            BERT's embeddings.
        config: an `ElectraConfig` with the discriminator's embedding sizes; see `generator_config`.

    Returns:
        An `ElectraEncoder` without a pooler, of the discriminator's dtype policy.

    Raises:
        ConfigError: the discriminator has no such embeddings, or other sizes.
    """
    check_position_table(discriminator.config)
    shared = discriminator.shared_embeddings
    with keras.name_scope("generator"):
        return ElectraEncoder(
            config, pooler=False, embeddings=shared, dtype=discriminator.dtype_policy, name="generator"
        )
