"""T5 (Raffel et al. 2020, arXiv:1910.10683), T5 1.1, mT5 and ByT5, as Hugging Face has them.

Mesh TensorFlow, with which they were trained, computes the same. In training two things differ there: all positions of a
text have the same dropout mask, here each has its own; and some initial weights (measured with the sizes of T5 base): the
table of relative positions has a standard deviation of 0.213 (Glorot), here and in transformers 0.036, and the kernels of
the feed-forward networks and of an untied output layer are truncated, 0.88 of the deviation here.

T5's encoder without its decoder, for tasks that write no text, for probes and features.

Decoders with T5's layers (Raffel et al. 2020, section 3.2), with which the encoder-decoder was compared.
"""

import keras

from bert_tf.backend import Dropout
from bert_tf.layers import AttentionMask, OutputLayer, RelativePositionBias, RMSNormalization, range_of
from bert_tf.layers.block_settings import BlockSettings
from bert_tf.models.decoder import Decoder
from bert_tf.models.encoder_decoder import EncoderDecoder
from bert_tf.models.stack import ContextLayers, Stack, block_settings, token_embeddings, transformer_blocks
from bert_tf.models.t5.config import T5Config, T5DecoderConfig, T5EncoderConfig
from bert_tf.models.transformer_encoder import TransformerEncoder
from bert_tf.types import Config, Policy


@keras.saving.register_keras_serializable("bert_tf")
class T5(EncoderDecoder):
    """An encoder-decoder with relative positions, normalization before each part, and no biases.

    Attention scores are not divided by sqrt(d): the initialization of the queries has that factor. The relative
    positions of one table serve all layers of the encoder, those of another all of the decoder; the attention to the
    encoder has none.

    Args, call arguments, results, `decode`: see `EncoderDecoder`, with a `T5Config`. In float16 the published models
    overflow.

    Example:
        model = T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        outputs = model({"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])})
        outputs["sequence_output"]  # [1, 2, 16]
    """

    config_class = T5Config

    @staticmethod
    def make_stacks(config: T5Config, dtype: Policy) -> tuple[Stack, Stack]:
        embeddings = token_embeddings(config, dtype, initializer_range=range_of(1.0))
        encoder = t5_encoder_stack(config, dtype, embeddings)
        decoder = Stack(
            embeddings=embeddings,
            blocks=transformer_blocks(
                t5_block(config, cross_attention=True),
                config.num_decoder_layers or config.num_layers,
                dtype,
                "decoder_layer",
            ),
            contexts=ContextLayers(
                AttentionMask(causal=True, dtype=dtype, name="decoder_mask"),
                bias=relative_positions(config, dtype, "decoder_bias", bidirectional=False),
                memory_mask=AttentionMask(dtype=dtype, name="cross_mask"),
            ),
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="decoder_layer_norm"),
            output_dropout=encoder.output_dropout,
        )
        if config.share_layers:
            for shared, block in zip(encoder.blocks, decoder.blocks):
                shared.build((None, None, config.hidden_size))
                block.share(shared)
        return encoder, decoder

    @staticmethod
    def make_output(config: T5Config, dtype: Policy) -> OutputLayer | None:
        if config.tied:
            return None
        sizes, deviation = (config.vocabulary_size, config.hidden_size), config.initializer_range
        return OutputLayer(*sizes, use_bias=False, initializer_range=deviation, dtype=dtype, name="output")

    @property
    def output_scale(self) -> float:
        return self.config.hidden_size**-0.5 if self.config.scale_outputs else 1.0


def t5_encoder_stack(config: Config, dtype: Policy, embeddings: keras.Layer) -> Stack:
    """The `Stack` of a T5's encoder."""
    return Stack(
        embeddings=embeddings,
        blocks=transformer_blocks(t5_block(config), config.num_layers, dtype, "encoder_layer"),
        contexts=ContextLayers(
            AttentionMask(dtype=dtype, name="encoder_mask"),
            bias=relative_positions(config, dtype, "encoder_bias", bidirectional=True),
        ),
        final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="encoder_layer_norm"),
        output_dropout=Dropout(config.dropout, dtype=dtype, name="output_dropout"),
    )


def t5_block(config: Config, cross_attention: bool = False) -> BlockSettings:
    """The settings of one layer; a decoder's also attends to the encoder's output."""
    heads = config.num_heads * config.head_size
    common = {"use_bias": False, "initializer_range": range_of(config.initializer_range)}
    attention = {
        "head_size": config.head_size,
        "dropout": config.dropout,
        "scale": False,
        "query_initializer_range": range_of((config.hidden_size * config.head_size) ** -0.5),
        "output_initializer_range": range_of(heads**-0.5),
    }
    feed_forward = {
        "gated": config.gated,
        "inner_dropout": config.dropout,
        "output_initializer_range": range_of(config.intermediate_size**-0.5),
    }
    norm = {"position": "pre", "rms": True}
    return block_settings(config, norm, common | attention, common | feed_forward, cross_attention)


def relative_positions(config: Config, dtype: Policy, name: str, bidirectional: bool) -> RelativePositionBias:
    """The relative positions of all layers of a stack."""
    return RelativePositionBias(
        config.num_heads,
        num_buckets=config.num_buckets,
        max_distance=config.max_distance,
        bidirectional=bidirectional,
        initializer_range=config.initializer_range,
        dtype=dtype,
        name=name,
    )


@keras.saving.register_keras_serializable("bert_tf")
class T5Encoder(TransformerEncoder):
    """The encoder of a T5: relative positions, normalization before each part, and no biases.

    Its variables have the names that they have in a `T5`, whose encoder's they are: a task that writes no text is
    fine-tuned on it, with `init_from` a T5 (as EncT5, Liu et al. 2021, and Hugging Face's T5EncoderModel and
    T5ForTokenClassification).

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `T5EncoderConfig`; `segment_ids` and
    `position_ids` are not read, and no length is refused. No published model has a pooler. The last of the
    `hidden_states` is normalized: it is the `sequence_output`.

    Raises:
        ConfigError: a masked LM head is asked for.

    Example:
        encoder = T5Encoder(T5EncoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 1]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5EncoderConfig

    published_pooler = False

    @staticmethod
    def make_stack(config: T5EncoderConfig, dtype: Policy) -> Stack:
        return t5_encoder_stack(config, dtype, token_embeddings(config, dtype, initializer_range=range_of(1.0)))


@keras.saving.register_keras_serializable("bert_tf")
class T5Decoder(Decoder):
    """A decoder with relative positions, normalization before each part, and no biases: T5's decoder without encoder.

    With `config.prefix` it is the "prefix LM" of table 2, whose relative positions tell both directions apart, as
    `Unitransformer` of Mesh TensorFlow with `fully_autoregressive=False`. No weights of it are published.

    Args, call arguments, results, `decode`: see `Decoder`, with a `T5DecoderConfig`.

    Example:
        config = T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
        outputs = T5Decoder(config)({"token_ids": np.array([[5, 6, 7]]), "prefix_mask": np.array([[True, True, False]])})
        outputs["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5DecoderConfig

    @staticmethod
    def make_stack(config: T5DecoderConfig, dtype: Policy) -> Stack:
        return Stack(
            embeddings=token_embeddings(config, dtype, initializer_range=range_of(1.0)),
            blocks=transformer_blocks(t5_block(config), config.num_layers, dtype),
            contexts=ContextLayers(
                AttentionMask(causal=True, dtype=dtype, name="attention_mask"),
                bias=relative_positions(config, dtype, "relative_positions", bidirectional=config.prefix),
            ),
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="final_layer_norm"),
            output_dropout=Dropout(config.dropout, dtype=dtype, name="output_dropout"),
        )

    @property
    def output_scale(self) -> float:
        return self.config.hidden_size**-0.5
