"""What every decoder has: six named inputs, a cache for generation, and what tasks and objectives ask of it."""

import keras
from keras import ops

from bert_tf.layers import AttentionMask, Embeddings, LastToken
from bert_tf.layers.embeddings import check_length
from bert_tf.layers.heads import last_positions
from bert_tf.models.backbone import Backbone, as_tensor, policy
from bert_tf.models.encoder import encoder_inputs
from bert_tf.models.stack import ContextLayers, Stack, block_settings, transformer_blocks
from bert_tf.models.token_output import TokenOutput

#: The features a decoder reads; all but the first may be left out. Tasks hand over `segment_ids` to every backbone;
#: decoders have no segments and do not read them.
DECODER_INPUTS = ("token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids", "prefix_mask")


class Decoder(TokenOutput, Backbone):
    """The base of a causal language model: a `Backbone` in which each token sees itself and the tokens before it.

    A family says with `make_stack` what it consists of, and with `make_output` whether it has an output layer of its own.

    Args:
        config: an instance of `config_class`, with `max_positions` and `skipped_id`.
        pooler: whether there is a `pooled_output`: the vector of the last real token, without a dense layer. Tokens
            of the id `config.skipped_id` do not count.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None for the global one.
        name: of the model; None for that of its family.

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

    structure = "decoder"

    @staticmethod
    def make_stack(config, dtype):
        """The `Stack` of a configuration; a family defines it."""
        raise NotImplementedError("a Decoder must define make_stack(config, dtype)")

    @staticmethod
    def make_output(config, dtype):
        """The `OutputLayer` of a configuration; None for the token table."""
        return None

    def __init__(
        self,
        config,
        pooler=True,
        output_hidden_states=False,
        output_attention_scores=False,
        dtype=None,
        name=None,
        **arguments,
    ):
        # === Layers ===
        dtype = policy(dtype)
        stack, output = self.make_stack(config, dtype), self.make_output(config, dtype)
        last = LastToken(config.skipped_id, dtype=dtype, name="last_token")

        # === Functional model ===
        inputs = decoder_inputs()
        found = stack(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": found.last}
        if pooler:
            read = {name: inputs[name] for name in ("padding_mask", "token_ids")}
            outputs["pooled_output"] = last(found.last, **read)
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
            pooler=pooler,
            output_hidden_states=output_hidden_states,
            output_attention_scores=output_attention_scores,
            **arguments,
        )
        self._stack = stack  # not a Keras layer, which would be counted a second time
        self._is_read = last.mask
        if output is not None:
            self.output_layer = output

    def standardize_inputs(self, inputs):
        inputs = super().standardize_inputs(inputs)
        if inputs.get("position_ids") is None:
            check_length(inputs["token_ids"].shape[1], self.config.max_positions)
        return inputs

    def blocks(self):
        """The transformer layers, bottom first."""
        return list(self._stack.blocks)

    @property
    def embedding_table(self):
        """The token table, a variable [V, H], to which the output layer is tied."""
        return self._stack.embeddings.token_table

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
        inputs, positions = self.standardize_inputs(inputs), as_tensor(positions)
        if not self.pooler:
            return {"sequence_output": self._stack(inputs, positions, training=training).last}
        mask = self._is_read(inputs["padding_mask"], inputs["token_ids"])
        last = last_positions(ops.ones_like(inputs["token_ids"]) if mask is None else mask)
        x = self._stack(inputs, ops.concatenate([last, positions], axis=1), training=training).last
        return {"sequence_output": x[:, 1:], "pooled_output": x[:, 0]}

    def empty_cache(self, batch, length):
        """A cache for `decode`: a pair (keys, values) for each layer, each zeros [batch, h, length, d].

        h is the number of the heads of keys and values.

        Args:
            batch: B, an int or an int scalar tensor.
            length: the tokens that it has room for, an int or an int scalar tensor.
        """
        return self._stack.empty_cache(batch, length)

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
        given = {"padding_mask": padding_mask, "position_ids": position_ids, "prefix_mask": prefix_mask}
        found = self._stack({"token_ids": token_ids} | given, cache=cache, cache_position=cache_position)
        return found.last, found.cache


def decoder_stack(config, dtype, settings=None, final_norm=None, position_initializer_range=None):
    """The `Stack` of GPT-1, or of a family that differs from it in these arguments.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        settings: the `BlockSettings` of all blocks; None for BERT's.
        final_norm: see `Stack`.
        position_initializer_range: see `Embeddings`.
    """
    return Stack(
        embeddings=decoder_embeddings(config, config.hidden_size, dtype, position_initializer_range),
        blocks=transformer_blocks(settings or block_settings(config), config.num_layers, dtype),
        contexts=ContextLayers(AttentionMask(causal=True, dtype=dtype, name="attention_mask")),
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
        initializer_range=config.initializer_range,
        position_initializer_range=position_initializer_range,
        dtype=dtype,
        name="embeddings",
    )


def decoder_inputs():
    """The symbolic inputs of a decoder: [B, S] each, all but `token_ids` optional."""
    prefix_mask = keras.Input(shape=(None,), dtype="bool", optional=True, name="prefix_mask")
    return encoder_inputs() | {"prefix_mask": prefix_mask}
