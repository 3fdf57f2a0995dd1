"""What every decoder has: six named inputs, a cache for generation, and what tasks and objectives ask of it."""

import dataclasses

import keras
from keras import ops

from bert_tf.backend import product_with_transposed
from bert_tf.layers import AttentionMask, Embeddings, LastToken
from bert_tf.layers.embeddings import check_length
from bert_tf.layers.heads import last_positions
from bert_tf.models.backbone import Backbone, as_tensor
from bert_tf.models.encoder import encoder_inputs
from bert_tf.models.transformer_encoder import run_blocks, transformer_block

#: The features a decoder reads; all but the first may be left out. Tasks hand over `segment_ids` to every backbone;
#: decoders have no segments and do not read them.
DECODER_INPUTS = ("token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids", "prefix_mask")


class Decoder(Backbone):
    """The base of a causal language model: a `Backbone` in which each token sees itself and the tokens before it.

    Args:
        config: an instance of `config_class`, with `max_positions` and `skipped_id`.
        layers: a `DecoderLayers`.
        dtype: the dtype policy of the layers.
        name: of the model.
        pooler: whether there is a `pooled_output`: the vector of the last real token, without a dense layer; with a
            `config.skipped_id` of the last token that is another.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.

    Call arguments:
        inputs: dict of [B, S] tensors: `token_ids`, and where they are not the default `padding_mask` (all real;
            padding may be on either side), `sequence_ids` (one text per row; packed texts do not see each other),
            `position_ids` (0..S-1; in a packed row they restart with each text), `prefix_mask` (bool, True at
            tokens that every token of their text sees; none). `segment_ids` are not read.
        training: whether dropout is active.

    Returns:
        dict: `sequence_output` [B, S, H]; `pooled_output` [B, H]; on request `hidden_states`, a list of
        num_layers + 1 [B, S, H] with the embeddings first and the `sequence_output` last, and
        `attention_scores`, a list of num_layers float32 [B, n, S, S] (probabilities, before dropout).

    Raises:
        ConfigError: when called: sequences above `config.max_positions` without `position_ids`.
        DataError: when called: `token_ids` are missing, or there is an input of another name.

    Example:
        decoder = GPT2Decoder(GPT2Config(50_257, hidden_size=64, num_layers=2, num_heads=2, intermediate_size=256))
        outputs = decoder({"token_ids": np.array([[464, 4141, 286]])})
        decoder.output_logits(outputs["sequence_output"])  # [1, 3, 50257]: what comes after each token

        cache = decoder.empty_cache(batch=1, length=8)  # the same, token by token
        for position, token in enumerate([464, 4141, 286]):
            x, cache = decoder.decode(np.array([[token]]), cache, position)
        decoder.output_logits(x)  # [1, 1, 50257]
    """

    kind = "decoder"

    def __init__(
        self,
        config,
        layers,
        dtype,
        name,
        pooler=True,
        output_hidden_states=False,
        output_attention_scores=False,
        **arguments,
    ):
        # === Functional model ===
        inputs = decoder_inputs()
        hidden_states, attention_scores = layers.encode(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": hidden_states[-1]}
        last = LastToken(config.skipped_id, dtype=dtype, name="last_token")
        if pooler:
            read = {name: inputs[name] for name in ("padding_mask", "token_ids")}
            outputs["pooled_output"] = last(hidden_states[-1], **read)
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
            pooler=pooler,
            output_hidden_states=output_hidden_states,
            output_attention_scores=output_attention_scores,
            **arguments,
        )
        self._decoder_layers = layers  # not a Keras layer, which would be counted a second time
        self._is_read = last.mask

    @property
    def head_size(self):
        """d, the width of a head's keys and values."""
        return self.config.hidden_size // self.config.num_heads

    def complete(self, inputs):
        inputs = super().complete(inputs)
        if inputs.get("position_ids") is None:
            check_length(inputs["token_ids"].shape[1], self.config.max_positions)
        return inputs

    def blocks(self):
        """The transformer layers, bottom first."""
        return list(self._decoder_layers.blocks)

    @property
    def embedding_table(self):
        """The token table, a variable [V, H], to which the output layer is tied."""
        return self._decoder_layers.embeddings.token_table

    @property
    def output_table(self):
        """The table of the output layer, a variable [V, H]: the token table."""
        return self.embedding_table

    @property
    def output_bias(self):
        """The bias of the output layer, a variable [V]; None for none."""
        return None

    def output_logits(self, x):
        """The logits of the next token: float [..., H] -> float32 [..., V]."""
        x, table = ops.cast(x, self.compute_dtype), ops.cast(self.output_table, self.compute_dtype)
        logits = ops.cast(product_with_transposed(x, table), "float32")
        return logits if self.output_bias is None else logits + ops.cast(self.output_bias, "float32")

    def output_factors(self, x):
        """A pair of the compute dtype, whose product, with the second transposed, is logits.

        Args: float [..., H]. Returns: float [..., H], float [V, H]; with a bias [..., H + 1] and [V, H + 1].
        """
        x, table = ops.cast(x, self.compute_dtype), ops.cast(self.output_table, self.compute_dtype)
        if self.output_bias is None:
            return x, table
        bias = ops.cast(self.output_bias, self.compute_dtype)[:, None]
        return ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1), ops.concatenate([table, bias], axis=-1)

    def outputs_at(self, inputs, positions, training=False):
        """The outputs at some positions only, as heads read them; the last layer is evaluated only there.

        Args:
            inputs: dict of the decoder's inputs.
            positions: int32 [B, P], each in 0..S-1; P may be 0.
            training: whether dropout is active.

        Returns:
            dict: `sequence_output` float [B, P, H], the vectors at these positions; `pooled_output` [B, H] where
            the decoder has a pooler.
        """
        layers, inputs, positions = self._decoder_layers, self.complete(inputs), as_tensor(positions)
        if not self.pooler:
            return {"sequence_output": layers.encode(inputs, positions, training=training)[0][-1]}
        mask = self._is_read(inputs["padding_mask"], inputs["token_ids"])
        last = last_positions(ops.ones_like(inputs["token_ids"]) if mask is None else mask)
        x = layers.encode(inputs, ops.concatenate([last, positions], axis=1), training=training)[0][-1]
        return {"sequence_output": x[:, 1:], "pooled_output": x[:, 0]}

    def empty_cache(self, batch, length):
        """A cache for `decode`: a pair (keys, values) for each layer, each zeros [batch, n, length, d].

        Args:
            batch: B, an int or an int scalar tensor.
            length: the tokens that it has room for, an int or an int scalar tensor.
        """
        zeros = ops.zeros((batch, self.config.num_heads, length, self.head_size), dtype=self.compute_dtype)
        return [(zeros, zeros) for _ in self.blocks()]

    def decode(self, token_ids, cache, cache_position, padding_mask=None, position_ids=None):
        """Computes the next tokens of texts whose earlier tokens are in a cache; without dropout.

        The prompts of a batch end in the same column: shorter ones are padded on the left, with False in
        `padding_mask` and position 0 at their first real token. The first call has the prompts, each later one a
        token. The results are those of the whole texts at once. A model that is trained with a prefix (`prefix`) takes
        the tokens of the first call for it: they see each other in both directions.

        Args:
            token_ids: int [B, Q], the tokens in columns `cache_position` to `cache_position` + Q - 1.
            cache: of `empty_cache` or of the last call.
            cache_position: int scalar, the tokens that the cache holds so far.
            padding_mask: bool [B, length], False at padding, of all columns of the cache; those that are not
                filled yet are not seen whatever it says. None for no padding.
            position_ids: int [B, Q], below `config.max_positions`; None for the columns' numbers.

        Returns:
            A pair: `sequence_output` float [B, Q, H]; the new cache.
        """
        token_ids, padding_mask, position_ids = (as_tensor(x) for x in (token_ids, padding_mask, position_ids))
        if position_ids is None:
            columns = ops.arange(ops.shape(token_ids)[1], dtype="int32") + cache_position
            position_ids = ops.broadcast_to(columns[None], ops.shape(token_ids))
        prefix_mask = None
        if self.prefix:
            # The tokens of this call; those before them are seen anyway, so that later calls are not changed.
            columns = ops.arange(ops.shape(cache[0][0])[2], dtype="int32")[None] - cache_position
            prefix_mask = ops.logical_and(columns >= 0, columns < ops.shape(token_ids)[1])
        return self._decoder_layers.decode(token_ids, cache, cache_position, padding_mask, position_ids, prefix_mask)


@dataclasses.dataclass(frozen=True)
class DecoderLayers:
    """The layers of a decoder, in the order of their calls.

    Args:
        mask: a causal `AttentionMask`.
        embeddings: from ids [B, S] to [B, S, H].
        blocks: `TransformerBlock`s, bottom first.
        final_norm: the normalization of the last layer's output; None for none.
        bias: a `RelativePositionBias` for all blocks; None for none.
        output_dropout: after the last normalization; None for none.
    """

    mask: keras.Layer
    embeddings: keras.Layer
    blocks: list
    final_norm: keras.Layer | None
    bias: keras.Layer | None = None
    output_dropout: keras.Layer | None = None

    def encode(self, inputs, positions=None, return_attention_scores=False, training=None):
        """Calls the layers on symbolic inputs or on tensors; see `TransformerLayers.encode`.

        The last of the hidden states is normalized by `final_norm`.
        """
        token_ids = inputs["token_ids"]
        seen = {name: inputs[name] for name in ("padding_mask", "sequence_ids", "prefix_mask")}
        mask = self.mask(token_ids, **seen)
        x = self.embeddings(token_ids, position_ids=inputs["position_ids"], training=training)
        bias = None if self.bias is None else self.bias(token_ids)
        contexts = [(mask, None, bias) for _ in self.blocks]
        hidden_states, scores = run_blocks(self.blocks, x, contexts, positions, return_attention_scores, training)
        last = self._normalized(hidden_states[-1])
        if self.output_dropout is not None:
            last = self.output_dropout(last, training=training)
        return [*hidden_states[:-1], last], scores

    def decode(self, token_ids, cache, cache_position, padding_mask, position_ids, prefix_mask=None):
        """See `Decoder.decode`."""
        length = ops.shape(cache[0][0])[2]
        place = {"cache_position": cache_position, "cache_length": length}
        mask = self.mask(token_ids, padding_mask=padding_mask, prefix_mask=prefix_mask, **place)
        bias = None if self.bias is None else self.bias(token_ids, **place)
        x = self.embeddings(token_ids, position_ids=position_ids)
        written = []
        for block, pair in zip(self.blocks, cache, strict=True):
            x, pair = block(x, mask, bias=bias, cache=pair, cache_position=cache_position)
            written.append(pair)
        return self._normalized(x), written

    def _normalized(self, x):
        return x if self.final_norm is None else self.final_norm(x)


def decoder_layers(
    config, dtype, norm, final_norm=None, output_initializer_range=None, position_initializer_range=None
):
    """Makes the layers of GPT-1 or GPT-2.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        norm: "post" or "pre", where the normalizations of a layer are.
        final_norm, output_initializer_range, position_initializer_range: of `DecoderLayers`, `TransformerBlock`
            and `Embeddings`.
    """
    return DecoderLayers(
        mask=AttentionMask(causal=True, dtype=dtype, name="attention_mask"),
        embeddings=decoder_embeddings(config, config.hidden_size, dtype, position_initializer_range),
        blocks=[
            transformer_block(
                config, dtype, f"transformer_layer_{i}", norm=norm, output_initializer_range=output_initializer_range
            )
            for i in range(config.num_layers)
        ],
        final_norm=final_norm,
    )


def decoder_embeddings(config, size, dtype, position_initializer_range=None):
    """GPT's embeddings of `size`: tokens and learned positions, without a normalization."""
    return Embeddings(
        vocabulary_size=config.vocabulary_size,
        size=size,
        max_positions=config.max_positions,
        num_segments=0,
        dropout=config.dropout,
        layer_norm_epsilon=None,
        initializer_range=config.initializer_range,
        position_initializer_range=position_initializer_range,
        dtype=dtype,
        name="embeddings",
    )


def decoder_inputs():
    """The symbolic inputs of a decoder: [B, S] each, all but `token_ids` optional."""
    prefix_mask = keras.Input(shape=(None,), dtype="bool", optional=True, name="prefix_mask")
    return encoder_inputs() | {"prefix_mask": prefix_mask}
