"""What every transformer here consists of: embeddings, blocks one after the other, and what each block reads."""

import dataclasses
from collections.abc import Callable, Sequence

import keras
from keras import ops

from bert_tf.layers import (
    AttentionMask,
    AttentionSettings,
    BlockContext,
    BlockSettings,
    FeedForwardSettings,
    NormSettings,
    RelativePositionBias,
    RotaryPositions,
    TransformerBlock,
)


@dataclasses.dataclass(frozen=True)
class ContextLayers:
    """The layers that make the `BlockContext` of one or more blocks: masks, rotations and biases.

    Args:
        mask: from token ids, padding mask and sequence ids to the mask of the self-attention.
        rotation: from token ids and position ids to the rotation of queries and keys; None for none.
        bias: from token ids to a bias of the attention scores; None for none.
        memory_mask: from token ids, and padding mask and sequence ids of the memory, to the mask of the
            cross-attention; None for no cross-attention.

    Example:
        ContextLayers(AttentionMask(causal=True), rotation=RotaryPositions(10_000.0, head_size=64))
    """

    mask: AttentionMask
    rotation: RotaryPositions | None = None
    bias: RelativePositionBias | None = None
    memory_mask: AttentionMask | None = None

    def __call__(self, inputs, place, memory, training):
        """The context of a forward pass, but for the parts that each block has of its own.

        Args:
            inputs: dict of what a stack reads; see `Stack`.
            place: dict of `cache_position` and `cache_length`, or empty without a cache.
            memory: a `Memory`, or None.
            training: whether dropout is active; no layer here has any.
        """
        token_ids = inputs["token_ids"]
        seen = {name: inputs.get(name) for name in ("padding_mask", "sequence_ids", "prefix_mask")}
        context = BlockContext(mask=self.mask(token_ids, **seen, **place))
        if self.rotation is not None:
            context = context._replace(rotation=self.rotation(token_ids, position_ids=inputs.get("position_ids")))
        if self.bias is not None:
            context = context._replace(bias=self.bias(token_ids, **place))
        if self.memory_mask is not None:
            ids = {"sequence_ids": inputs.get("sequence_ids"), "key_sequence_ids": memory.sequence_ids}
            context = context._replace(memory_mask=self.memory_mask(token_ids, padding_mask=memory.padding_mask, **ids))
        return context


@dataclasses.dataclass(frozen=True)
class Memory:
    """The first text of an encoder-decoder, as the decoder's blocks read it.

    Args:
        vectors: float [B, T, H]; or a list of what `Attention.keys_and_values` makes of it in each block.
        padding_mask: bool [B, T], True at real tokens; None for all.
        sequence_ids: int [B, T] of packed texts; None for one text a row.

    Example:
        Memory(np.ones((2, 7, 8), "float32"), padding_mask=np.ones((2, 7), bool))
    """

    vectors: object
    padding_mask: object = None
    sequence_ids: object = None


@dataclasses.dataclass(frozen=True)
class StackOutputs:
    """What a `Stack` returns.

    Attributes:
        hidden_states: list of the float [B, S, H] that enters the first block and that leaves each; the last is
            normalized, and [B, P, H] with `positions`.
        attention_scores: list of the blocks' float32 [B, n, S, S], empty where they are not asked for.
        cache: list of the blocks' new caches, empty without a cache.
    """

    hidden_states: list
    attention_scores: list
    cache: list

    @property
    def last(self):
        """The last of the hidden states."""
        return self.hidden_states[-1]


@dataclasses.dataclass(frozen=True)
class Stack:
    """The layers of a transformer in the order of their calls: of an encoder, a decoder, or one half of both.

    It is not a Keras layer: the layers belong to the model, under their own names.

    Args:
        embeddings: from token ids, segment ids and position ids [B, S] to [B, S, E].
        blocks: `TransformerBlock`s, bottom first. One that is in the list several times shares its weights.
        contexts: list of `ContextLayers`, one for each block; or one for all of them.
        projection: from [B, S, E] to [B, S, H]; None where E is H.
        final_norm: of the last block's output; None for none.
        output_dropout: after the last normalization; None for none.

    Call arguments:
        inputs: dict of [B, S] tensors: `token_ids`, and with None where they are not given `padding_mask`,
            `segment_ids`, `sequence_ids`, `position_ids`, `prefix_mask`. Symbolic ones or tensors.
        positions: int [B, P], where the last block is computed; None for everywhere.
        memory: a `Memory` for the cross-attention; None for none.
        cache: list of the blocks' caches, of `empty_cache` or of the last call; None for no cache.
        cache_position: int, the position of the first token in the cache.
        return_attention_scores: whether the probabilities are wanted.
        training: whether dropout is active.

    Returns:
        `StackOutputs`.

    Example:
        settings = BlockSettings(AttentionSettings(num_heads=2), FeedForwardSettings(size=32))
        stack = Stack(
            embeddings=Embeddings(100, 8, 16, num_segments=0, dropout=0.1, layer_norm_epsilon=1e-12, initializer_range=0.02),
            blocks=[TransformerBlock(settings) for _ in range(2)],
            contexts=ContextLayers(AttentionMask(causal=True)),
        )
        stack({"token_ids": np.array([[5, 6, 7]])}).last  # [1, 3, 8]
    """

    embeddings: keras.Layer
    blocks: Sequence[keras.Layer]
    contexts: ContextLayers | list
    projection: keras.Layer | None = None
    final_norm: keras.Layer | None = None
    output_dropout: Callable | None = None

    def __call__(self, inputs, positions=None, training=None, **options):
        return self.run(self.embed(inputs, training), inputs, positions, training=training, **options)

    def embed(self, inputs, training=None):
        """What enters the first block: [B, S, H]."""
        numbers = {name: inputs.get(name) for name in ("segment_ids", "position_ids")}
        x = self.embeddings(inputs["token_ids"], **numbers, training=training)
        return x if self.projection is None else self.projection(x)

    def run(
        self,
        x,
        inputs,
        positions=None,
        memory=None,
        cache=None,
        cache_position=None,
        return_attention_scores=False,
        training=None,
    ):
        """The blocks and what follows them, on the result of `embed`; see the class."""
        place = {}
        if cache is not None:
            cache_position = ops.convert_to_tensor(cache_position, dtype="int32")
            place = {"cache_position": cache_position, "cache_length": ops.shape(cache[0][0])[2]}
        hidden_states, attention_scores, written, made = [x], [], [], {}
        for i, (block, layers) in enumerate(zip(self.blocks, self._contexts(), strict=True)):
            if id(layers) not in made:
                made[id(layers)] = layers(inputs, place, memory, training)
            context = made[id(layers)]
            if memory is not None:
                vectors = memory.vectors
                context = context._replace(memory=vectors[i] if isinstance(vectors, list) else vectors)
            if cache is not None:
                context = context._replace(cache=cache[i], cache_position=cache_position)
            if positions is not None and i == len(self.blocks) - 1:
                context = context._replace(positions=positions)
            x = block(x, context, return_attention_scores=return_attention_scores, training=training)
            x, *more = x if isinstance(x, tuple) else (x,)
            if return_attention_scores:
                attention_scores.append(more.pop(0))
            written += more
            hidden_states.append(x)
        if self.final_norm is not None:
            x = self.final_norm(x)
        if self.output_dropout is not None:
            x = self.output_dropout(x, training=training)
        return StackOutputs([*hidden_states[:-1], x], attention_scores, written)

    def _contexts(self):
        return self.contexts if isinstance(self.contexts, list) else [self.contexts] * len(self.blocks)

    def empty_cache(self, batch, length):
        """A cache for `length` tokens of `batch` texts: a pair (keys, values) of zeros for each block."""
        return [block.attention.empty_cache(batch, length) for block in self.blocks]


def block_settings(config, norm=None, attention=None, feed_forward=None, cross_attention=False):
    """BERT's `BlockSettings`, or those of a family that differs from it in some of them.

    Args:
        config: an `EncoderConfig`.
        norm, attention, feed_forward: dicts of the settings that differ.
        cross_attention: whether there is an attention to a second text.
    """
    rates = {"output_dropout": config.dropout, "initializer_range": config.initializer_range}
    own = {"num_heads": config.num_heads, "dropout": config.attention_dropout}
    network = {"size": config.intermediate_size, "activation": config.activation}
    return BlockSettings(
        AttentionSettings(**rates | own | (attention or {})),
        FeedForwardSettings(**rates | network | (feed_forward or {})),
        NormSettings(**{"epsilon": config.layer_norm_epsilon} | (norm or {})),
        cross_attention,
    )


def transformer_blocks(settings, count, dtype, name="transformer_layer"):
    """`count` blocks of the same settings, named by their numbers."""
    return [TransformerBlock(settings, dtype=dtype, name=f"{name}_{i}") for i in range(count)]
