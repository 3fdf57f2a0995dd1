"""What every decoder has: six named inputs, a cache for generation, and what tasks and objectives ask of it."""

from typing import Any

from keras import ops

from bert_tf.layers import AttentionMask, LastToken
from bert_tf.layers.heads import last_positions
from bert_tf.models.backbone import Backbone, as_tensor, symbolic_inputs
from bert_tf.models.stack import ContextLayers, Stack, StackModel, block_settings, token_embeddings, transformer_blocks
from bert_tf.models.token_output import TokenOutput
from bert_tf.types import Config, Function, Options, Policy, Tensor, Tensors

#: The features a decoder reads; all but the first may be left out. Tasks hand over `segment_ids` to every backbone;
#: decoders have no segments and do not read them.
DECODER_INPUTS = ("token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids", "prefix_mask")


class Decoder(TokenOutput, StackModel, Backbone):
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
    def make_pooler(config: Config, dtype: Policy) -> Function:
        last = LastToken(config.skipped_id, dtype=dtype, name="last_token")
        return lambda x, inputs: last(x, inputs["padding_mask"], inputs["token_ids"])

    @staticmethod
    def make_inputs(config: Config, dtype: Policy, **arguments: Options) -> Tensors:
        return symbolic_inputs(DECODER_INPUTS)

    def __init__(self, config: Config, **options: Options) -> None:
        super().__init__(config, **options)
        self.add_output()

    def pooler_positions(self, inputs: Tensors) -> Tensor:
        mask = self.get_layer("last_token").mask(inputs["padding_mask"], inputs["token_ids"])
        return last_positions(ops.ones_like(inputs["token_ids"]) if mask is None else mask)

    def _pool_first(self, x):
        return x[:, 0]

    def empty_cache(self, batch: Tensor, length: int) -> list[Tensor]:
        """A cache for `decode`: a pair (keys, values) for each layer, each zeros [batch, h, length, d].

        h is the number of the heads of keys and values.

        Args:
            batch: B, an int or an int scalar tensor.
            length: the tokens that it has room for, an int or an int scalar tensor.
        """
        return self._stack.empty_cache(batch, length)

    def decode(
        self,
        token_ids: Tensor,
        cache: list[Tensor],
        cache_position: Tensor,
        padding_mask: Tensor = None,
        position_ids: Tensor = None,
    ) -> tuple[Tensor, list[Tensor]]:
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
        places = {"padding_mask": padding_mask, "position_ids": position_ids, "prefix_mask": prefix_mask}
        outputs = self._stack({"token_ids": token_ids} | places, cache=cache, cache_position=cache_position)
        return outputs.last, outputs.cache


def decoder_stack(
    config: Config, dtype: Policy, settings: Any = None, final_norm: Any = None, **embeddings: Options
) -> Stack:
    """The `Stack` of GPT-1, or of a family that differs from it in these arguments.

    Args:
        config: the configuration.
        dtype: the dtype policy.
        settings: the `BlockSettings` of all blocks; None for BERT's.
        final_norm: see `Stack`.
        embeddings: of `Embeddings`, such as `position_initializer_range`.
    """
    return Stack(
        embeddings=token_embeddings(config, dtype, max_positions=config.max_positions, **embeddings),
        blocks=transformer_blocks(settings or block_settings(config), config.num_layers, dtype),
        contexts=ContextLayers(AttentionMask(causal=True, dtype=dtype, name="attention_mask")),
        final_norm=final_norm,
    )
