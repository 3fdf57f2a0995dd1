"""What every encoder-decoder has: two texts by name, a cache for generation, and its layers."""

import dataclasses

import keras
from keras import ops

from bert_tf.backend import product_with_transposed
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.backbone import Backbone, as_tensor

#: The features an encoder-decoder reads; the two `token_ids` are required. Tasks hand over `segment_ids` to every
#: backbone; encoder-decoders have no segments and do not read them.
ENCODER_DECODER_INPUTS = (
    "token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids",
    "decoder_token_ids", "decoder_padding_mask", "decoder_sequence_ids", "decoder_position_ids",
)  # fmt: skip


class EncoderDecoder(Backbone):
    """The base of a model that reads a text and writes another, token by token.

    Args:
        config: an instance of `config_class`.
        layers: an `EncoderDecoderLayers`.
        dtype: the dtype policy of the layers.
        name: of the model.
        pooler: False; there is none.
        output_hidden_states: whether the result holds all layers' outputs.

    Call arguments:
        inputs: dict: `token_ids` int [B, S] and `decoder_token_ids` int [B, T], the written text moved to the right
            by a start token; where they are not the default `padding_mask`, `decoder_padding_mask` (bool, all real)
            and, for several texts in a row, `sequence_ids` and `decoder_sequence_ids` (text k of one belongs to text
            k of the other) and `position_ids` and `decoder_position_ids`, which restart with each text.
            `segment_ids` are not read, nor are positions by a model with relative ones (T5).
        training: whether dropout is active.

    Returns:
        dict: `sequence_output` [B, T, H], of the decoder; `encoder_output` [B, S, H]; on request
        `encoder_hidden_states` and `hidden_states`, lists with the embeddings first.

    Raises:
        ConfigError: a pooler is asked for.
        DataError: when called: see `Backbone`; or one of the two `sequence_ids` without the other.

    Example:
        model = T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        source = np.array([[5, 6, 1]])
        outputs = model({"token_ids": source, "decoder_token_ids": np.array([[0, 7]])})
        model.output_logits(outputs["sequence_output"])  # [1, 2, 100]: what comes after each token

        sources, cache = model.sources(model.encode(source)), model.empty_cache(batch=1, length=8)
        x, cache = model.decode(np.array([[0]]), cache, 0, sources)  # the same, token by token
    """

    kind = "encoder_decoder"

    def __init__(self, config, layers, dtype, name, pooler=False, output_hidden_states=False, **arguments):
        if pooler:
            raise ConfigError(
                f"{type(self).__name__} is an encoder-decoder, which has no pooler; set task.kind=text_to_text to "
                "fine-tune it"
            )
        # === Functional model ===
        inputs = encoder_decoder_inputs()
        encoded = layers.encode(inputs)
        decoded = layers.decode(inputs, encoded[-1])
        outputs = {"sequence_output": decoded[-1], "encoder_output": encoded[-1]}
        if output_hidden_states:
            outputs |= {"hidden_states": decoded, "encoder_hidden_states": encoded}

        # === Configuration ===
        super().__init__(
            config, inputs, outputs, dtype=dtype, name=name, output_hidden_states=output_hidden_states, **arguments
        )
        self._parts = layers  # not a Keras layer, which would be counted a second time

    def complete(self, inputs):
        inputs = super().complete(inputs)
        given = [name for name in ("sequence_ids", "decoder_sequence_ids") if inputs[name] is not None]
        if len(given) == 1:
            raise DataError(f"there is '{given[0]}' alone; give 'sequence_ids' and 'decoder_sequence_ids', or neither")
        return inputs

    def blocks(self):
        """The transformer layers of the encoder, bottom first, then those of the decoder."""
        return [*self._parts.encoder_blocks, *self._parts.decoder_blocks]

    @property
    def embedding_table(self):
        """The token table, a variable [V, H]."""
        return self._parts.embeddings.token_table

    def output_logits(self, x):
        """The logits of the next token: float [..., H] -> float32 [..., V]."""
        return self._parts.logits(x)

    def output_factors(self, x):
        """A pair (float [..., H], float [V, H]) of the compute dtype; the product with the second transposed is logits."""
        return self._parts.factors(x)

    def encode(self, token_ids, padding_mask=None):
        """The encoder alone: int [B, S], bool [B, S] -> float [B, S, H]."""
        given = {"token_ids": as_tensor(token_ids), "padding_mask": as_tensor(padding_mask)}
        return self._parts.encode(dict.fromkeys(("sequence_ids", "position_ids")) | given)[-1]

    def sources(self, encoder_output):
        """What every layer of the decoder needs of the encoder's output: a pair of float [B, n, S, d] each."""
        return [block.cross_attention.keys_and_values(encoder_output) for block in self._parts.decoder_blocks]

    def empty_cache(self, batch, length):
        """A cache for `decode`: a pair (keys, values) for each layer, each zeros [batch, n, length, d]."""
        zeros = ops.zeros((batch, self.config.num_heads, length, self.config.head_size), dtype=self.compute_dtype)
        return [(zeros, zeros) for _ in self._parts.decoder_blocks]

    def decode(self, token_ids, cache, cache_position, sources, source_mask=None):
        """Computes the next tokens of texts whose earlier tokens are in a cache; without dropout.

        Args:
            token_ids: int [B, Q], tokens number `cache_position` to `cache_position` + Q - 1.
            cache: of `empty_cache` or of the last call.
            cache_position: int scalar, the tokens that the cache holds so far.
            sources: of `sources`.
            source_mask: bool [B, S], False at padding of the encoder's input; None for no padding.

        Returns:
            A pair: `sequence_output` float [B, Q, H]; the new cache.
        """
        return self._parts.decode_cached(as_tensor(token_ids), cache, cache_position, sources, as_tensor(source_mask))


@dataclasses.dataclass(frozen=True)
class EncoderDecoderLayers:
    """The layers of an encoder-decoder, in the order of their calls.

    Args:
        embeddings: from ids [B, S] and position ids to [B, S, H], of both texts.
        encoder_mask, decoder_mask, cross_mask: `AttentionMask`s; the second is causal.
        encoder_bias, decoder_bias: `RelativePositionBias`es; None for none.
        encoder_blocks, decoder_blocks: `TransformerBlock`s, bottom first.
        encoder_norm, decoder_norm: from the last layer's output to the result; None for none.
        output_dropout: after these normalizations; None for none.
        output: the output layer's table [V, H], a layer with a `kernel`; None for the token table.
        output_scale: float, by which the decoder's output is multiplied before the output layer.
    """

    embeddings: keras.Layer
    encoder_mask: keras.Layer
    decoder_mask: keras.Layer
    cross_mask: keras.Layer
    encoder_bias: keras.Layer | None
    decoder_bias: keras.Layer | None
    encoder_blocks: list
    decoder_blocks: list
    encoder_norm: keras.Layer | None
    decoder_norm: keras.Layer | None
    output_dropout: keras.Layer | None
    output: keras.Layer | None
    output_scale: float = 1.0

    def encode(self, inputs, training=None):
        """The embeddings and the output of each layer of the encoder, a list of [B, S, H]."""
        token_ids = inputs["token_ids"]
        mask = self.encoder_mask(token_ids, padding_mask=inputs["padding_mask"], sequence_ids=inputs["sequence_ids"])
        bias = None if self.encoder_bias is None else self.encoder_bias(token_ids)
        hidden_states = [self.embeddings(token_ids, position_ids=inputs["position_ids"], training=training)]
        for block in self.encoder_blocks:
            hidden_states.append(block(hidden_states[-1], mask, bias=bias, training=training))
        return self._finished(hidden_states, self.encoder_norm, training)

    def decode(self, inputs, encoder_output, training=None):
        """The same of the decoder: [B, T, H]."""
        token_ids = inputs["decoder_token_ids"]
        mask = self.decoder_mask(
            token_ids, padding_mask=inputs["decoder_padding_mask"], sequence_ids=inputs["decoder_sequence_ids"]
        )
        source_mask = self.cross_mask(
            token_ids,
            padding_mask=inputs["padding_mask"],
            sequence_ids=inputs["decoder_sequence_ids"],
            key_sequence_ids=inputs["sequence_ids"],
        )
        bias = None if self.decoder_bias is None else self.decoder_bias(token_ids)
        context = {"bias": bias, "source": encoder_output, "source_mask": source_mask, "training": training}
        hidden_states = [self.embeddings(token_ids, position_ids=inputs["decoder_position_ids"], training=training)]
        for block in self.decoder_blocks:
            hidden_states.append(block(hidden_states[-1], mask, **context))
        return self._finished(hidden_states, self.decoder_norm, training)

    def decode_cached(self, token_ids, cache, cache_position, sources, source_mask):
        """See `EncoderDecoder.decode`."""
        place = {"cache_position": cache_position, "cache_length": ops.shape(cache[0][0])[2]}
        mask = self.decoder_mask(token_ids, **place)
        source_mask = self.cross_mask(token_ids, padding_mask=source_mask)
        bias = None if self.decoder_bias is None else self.decoder_bias(token_ids, **place)
        position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None] + cache_position
        x, written = self.embeddings(token_ids, position_ids=position_ids), []
        for block, pair, source in zip(self.decoder_blocks, cache, sources, strict=True):
            options = {"bias": bias, "source_cache": source, "source_mask": source_mask}
            x, pair = block(x, mask, cache=pair, cache_position=cache_position, **options)
            written.append(pair)
        return (x if self.decoder_norm is None else self.decoder_norm(x)), written

    def logits(self, x):
        """float [..., H] -> float32 [..., V]."""
        return ops.cast(product_with_transposed(*self.factors(x)), "float32")

    def factors(self, x):
        """See `EncoderDecoder.output_factors`."""
        table = self.embeddings.token_table if self.output is None else self.output.kernel
        return tuple(ops.cast(value, self.embeddings.compute_dtype) for value in (x * self.output_scale, table))

    def _finished(self, hidden_states, norm, training):
        last = hidden_states[-1] if norm is None else norm(hidden_states[-1])
        if self.output_dropout is not None:
            last = self.output_dropout(last, training=training)
        return [*hidden_states[:-1], last]


def encoder_decoder_inputs():
    """The symbolic inputs of an encoder-decoder: [B, S] and [B, T], all but the two `token_ids` optional."""
    return {
        name: keras.Input(
            shape=(None,),
            dtype="bool" if name.endswith("padding_mask") else "int32",
            optional=not name.endswith("token_ids"),
            name=name,
        )
        for name in ENCODER_DECODER_INPUTS
    }
