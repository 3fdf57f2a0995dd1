"""What every transformer here consists of: embeddings, blocks one after the other, and what each block reads.

`StackModel` is the base of the models that are one `Stack`: encoders and decoders.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import (
    AttentionMask,
    AttentionSettings,
    BlockContext,
    BlockSettings,
    Embeddings,
    FeedForwardSettings,
    NormSettings,
    RelativePositionBias,
    RotaryPositions,
    TransformerBlock,
)
from bert_tf.models.backbone import as_tensor, policy
from bert_tf.types import Config, Function, Mixin, Options, Policy, Settings, Tensor, Tensors


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

    def __call__(self, inputs: Tensors, place: Settings, memory: Any, training: bool | None) -> BlockContext:
        """The context of a forward pass, but for the parts that each block has of its own.

        Args:
            inputs: dict of what a stack reads; see `Stack`.
            place: dict of `cache_position` and `cache_length`, or empty without a cache.
            memory: a `Memory`, or None.
            training: whether dropout is active; no layer here has any.
        """
        token_ids = inputs["token_ids"]
        masking = {name: inputs.get(name) for name in ("padding_mask", "sequence_ids", "prefix_mask")}
        context = BlockContext(mask=self.mask(token_ids, **masking, **place))
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

    hidden_states: list[Any]
    attention_scores: list[Tensor]
    cache: list[Any]

    @property
    def last(self) -> Any:
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
    contexts: Any
    projection: keras.Layer | None = None
    final_norm: keras.Layer | None = None
    output_dropout: Function | None = None

    def __call__(
        self, inputs: Tensors, positions: Tensor = None, training: bool | None = None, **options: Options
    ) -> StackOutputs:
        return self.run(self.embed(inputs, training), inputs, positions, training=training, **options)

    def embed(self, inputs: Tensors, training: bool | None = None) -> Any:
        """What enters the first block: [B, S, H]."""
        numbers = {name: inputs.get(name) for name in ("segment_ids", "position_ids")}
        x = self.embeddings(inputs["token_ids"], **numbers, training=training)
        return x if self.projection is None else self.projection(x)

    def run(
        self,
        x: Tensor,
        inputs: Tensors,
        positions: Tensor = None,
        memory: Memory | None = None,
        cache: Tensor = None,
        cache_position: Tensor = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> StackOutputs:
        """The blocks and what follows them, on the result of `embed`; see the class."""
        place = {}
        if cache is not None:
            cache_position = ops.convert_to_tensor(cache_position, dtype="int32")
            place = {"cache_position": cache_position, "cache_length": ops.shape(cache[0][0])[2]}
        hidden_states, attention_scores, written, contexts = [x], [], [], {}
        for i, (block, layers) in enumerate(zip(self.blocks, self._contexts(), strict=True)):
            if id(layers) not in contexts:
                contexts[id(layers)] = layers(inputs, place, memory, training)
            context = contexts[id(layers)]
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

    def empty_cache(self, batch: Tensor, length: int) -> list[Tensor]:
        """A cache for `length` tokens of `batch` texts: a pair (keys, values) of zeros for each block."""
        return [block.attention.empty_cache(batch, length) for block in self.blocks]


def block_settings(
    config: Config, norm: Any = None, attention: Any = None, feed_forward: Any = None, cross_attention: bool = False
) -> BlockSettings:
    """BERT's `BlockSettings`, or those of a family that differs from it in some of them.

    Args:
        config: an `StackConfig`.
        norm, attention, feed_forward: dicts of the settings that differ.
        cross_attention: whether there is an attention to a second text.
    """
    rates = {"output_dropout": config.dropout, "initializer_range": config.initializer_range}
    attention_sizes = {"num_heads": config.num_heads, "dropout": getattr(config, "attention_dropout", config.dropout)}
    network = {"size": config.intermediate_size, "activation": config.activation}
    return BlockSettings(
        AttentionSettings(**rates | attention_sizes | (attention or {})),
        FeedForwardSettings(**rates | network | (feed_forward or {})),
        NormSettings(**{"epsilon": config.layer_norm_epsilon} | (norm or {})),
        cross_attention,
    )


def transformer_blocks(
    settings: BlockSettings, count: int, dtype: Policy, name: str = "transformer_layer"
) -> list[keras.Layer]:
    """`count` blocks of the same settings, named by their numbers."""
    return [TransformerBlock(settings, dtype=dtype, name=f"{name}_{i}") for i in range(count)]


def token_embeddings(config: Config, dtype: Policy, **settings: Options) -> Embeddings:
    """The `Embeddings` of a configuration, without positions and normalization; `settings` replace or add some."""
    common = {"vocabulary_size": config.vocabulary_size, "size": config.hidden_size}
    common |= {"dropout": config.dropout, "initializer_range": config.initializer_range}
    return Embeddings(**common | settings, dtype=dtype, name="embeddings")


class StackModel(Mixin):
    """Mixed into a `Backbone` that is one `Stack` with a pooler: `TransformerEncoder`, `Decoder` and XLNet.

    Args:
        config: an instance of `config_class`.
        pooler: whether there is a `pooled_output`; None for what the published models have.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
        embeddings: another model's embeddings layer of the same sizes, whose variables this one shares; None
            for new ones. Not kept when the model is saved alone.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None for the global one.
        arguments: `name` and `trainable` of `keras.Model`, and those of a subclass, which its `make_inputs` and
            `more_outputs` get.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        len(encoder.blocks())  # 2
    """

    #: Whether the published models have a `pooled_output`.
    published_pooler = True

    @staticmethod
    def make_stack(config: Config, dtype: Policy) -> Stack:
        """The `Stack` of a configuration; a family defines it."""
        raise NotImplementedError("define make_stack(config, dtype): it returns a Stack")

    @staticmethod
    def make_pooler(config: Config, dtype: Policy) -> Function:
        """A function from the sequence output and the inputs, a dict, to the pooled output [B, H]."""
        raise NotImplementedError("define make_pooler(config, dtype): it returns a function")

    @staticmethod
    def make_inputs(config: Config, dtype: Policy, **arguments: Options) -> Tensors:
        """The symbolic inputs, a dict."""
        raise NotImplementedError("define make_inputs(config, dtype): it returns a dict")

    @staticmethod
    def more_outputs(stack_outputs: StackOutputs, inputs: Tensors, dtype: Policy, **arguments: Options) -> Tensors:
        """Further outputs, a dict, made from `StackOutputs` and the inputs."""
        return {}

    def __init__(
        self,
        config: Config,
        pooler: bool | None = None,
        output_hidden_states: bool = False,
        output_attention_scores: bool = False,
        embeddings: keras.Layer | None = None,
        dtype: Policy = None,
        **arguments: Options,
    ) -> None:
        # === Layers ===
        dtype = policy(dtype)
        stack = self.make_stack(config, dtype)
        if embeddings is not None:
            _check_shared(embeddings, stack.embeddings)
            stack = dataclasses.replace(stack, embeddings=embeddings)
        pooler = self.published_pooler if pooler is None else pooler
        pool: Any = self.make_pooler(config, dtype) if pooler else None

        # === Functional model ===
        inputs = self.make_inputs(config, dtype, **arguments)
        stack_outputs = stack(inputs, return_attention_scores=output_attention_scores)
        outputs = {"sequence_output": stack_outputs.last}
        if pooler:
            outputs["pooled_output"] = pool(stack_outputs.last, inputs)
        if output_hidden_states:
            outputs["hidden_states"] = stack_outputs.hidden_states
        if output_attention_scores:
            outputs["attention_scores"] = stack_outputs.attention_scores
        outputs |= self.more_outputs(stack_outputs, inputs, dtype, **arguments)

        # === Configuration ===
        arguments |= {"pooler": pooler, "output_hidden_states": output_hidden_states}
        arguments["output_attention_scores"] = output_attention_scores
        super().__init__(config, inputs, outputs, dtype, **arguments)
        # Neither is a Keras layer, which would be counted a second time.
        self._stack, self._pool = stack, pool

    @property
    def longest(self) -> int | None:
        return getattr(self._stack.embeddings, "max_positions", None)

    def blocks(self) -> list[keras.Layer]:
        """The layers between embeddings and output, bottom first."""
        return list(self._stack.blocks)

    @property
    def embedding_table(self) -> Tensor:
        """The token table, a variable [V, E], to which an output layer is tied."""
        return self._stack.embeddings.token_table

    def pooler_positions(self, inputs: Tensors) -> Tensor:
        """int32 [B, 1]: where the pooler reads; by default the first token."""
        return ops.zeros_like(inputs["token_ids"][:, :1], dtype="int32")

    def outputs_at(self, inputs: Tensors, positions: Tensor, training: bool = False) -> Tensors:
        """The outputs at some positions only, as heads read them; the last block is evaluated only there.

        Its keys and values (ModernBERT: its whole attention) are computed at all positions. The values are the
        same; a 4-layer model needs about one sixth less computation when P is much smaller than S. In training,
        a position that is listed twice gets two independent dropout masks.

        Args:
            inputs: dict of the model's inputs.
            positions: int32 [B, P], each in 0..S-1; P may be 0.
            training: whether dropout is active.

        Returns:
            dict: `sequence_output` float [B, P, H], the vectors at these positions; `pooled_output` [B, H] where
            the model has a pooler.
        """
        inputs, positions = self.standardize_inputs(inputs), as_tensor(positions)
        if not self.pooler:
            return {"sequence_output": self._stack(inputs, positions, training=training).last}
        positions = ops.concatenate([self.pooler_positions(inputs), positions], axis=1)
        x = self._stack(inputs, positions, training=training).last
        return {"sequence_output": x[:, 1:], "pooled_output": self._pool_first(x)}

    def _pool_first(self, x):
        """The pooled output, from the vectors of which the first is at `pooler_positions`."""
        return self._pool(x, {})


def _check_shared(embeddings, expected):
    for name in ("vocabulary_size", "size", "max_positions", "num_segments"):
        shared, configured = getattr(embeddings, name, None), getattr(expected, name, None)
        if shared != configured:
            name = "embedding_size" if name == "size" else name
            raise ConfigError(f"the shared embeddings have {name}={shared}, the configuration says {configured}")
