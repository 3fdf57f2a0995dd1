"""One layer of a transformer."""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from bert_tf.backend import Dropout, recomputed
from bert_tf.errors import ConfigError
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.attention import Attention, results
from bert_tf.layers.block_settings import BlockSettings
from bert_tf.layers.internals import note
from bert_tf.layers.parts import RMSNormalization, SettingsLayer, dense, gather_positions
from bert_tf.types import Options, Settings, Shape, Tensor


class BlockContext(NamedTuple):
    """What a block reads beside its input: tensors, or None for what there is not.

    Args:
        mask: of `AttentionMask`: float, broadcast to [B, n, S, S] and added to the scores of the self-attention.
        rotation: of `RotaryPositions`, for the positions of the input.
        bias: of `RelativePositionBias`: float, broadcast to [B, n, S, S] and added to the same scores.
        memory: float [B, T, H], which the cross-attention reads; or what `Attention.keys_and_values` makes of it.
        memory_mask: float, broadcast to [B, n, S, T] and added to the scores of the cross-attention.
        cache: pair (keys, values) of float [B, h, T, d], of the self-attention.
        cache_position: int scalar tensor, the position of the first input in the cache.
        positions: int [B, P], the positions at which the result is wanted.

    Example:
        BlockContext(mask=AttentionMask(causal=True)(np.array([[5, 6, 7]])))
    """

    mask: Any = None
    rotation: Any = None
    bias: Any = None
    memory: Any = None
    memory_mask: Any = None
    cache: Any = None
    cache_position: Any = None
    positions: Any = None


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(SettingsLayer):
    """Attention and a feed-forward network, each with a residual connection and a normalization.

    With normalizations after each part, Vaswani et al. 2017 and `transformer_model` in google-research/bert
    `modeling.py`:

        x = norm(x + dropout(attention(x)))
        x = norm(x + dropout(W2 f(x)))

    and before each part, as GPT-2, T5, ModernBERT and Llama:

        x = x + dropout(attention(norm(x)))
        x = x + dropout(W2 f(norm(x)))

    With cross-attention there is a third part between the two, whose keys and values come from a memory.

    Args:
        settings: `BlockSettings`.

    Call arguments:
        x: float [B, S, H].
        context: a `BlockContext`; None for one without anything.
        return_attention_scores: whether the probabilities of the self-attention are returned too.
        training: whether dropout is active.

    Returns:
        float [B, P, H] in the compute dtype, P = S where the context has no `positions`. With
        `return_attention_scores` or a `cache_position` a tuple of

        - the same,
        - with `return_attention_scores`: float32 [B, n, P, S], the probabilities before dropout. With rotations, a
          cache or a packed projection the attention is computed at all positions, and so are these.
        - with a `cache_position`: the new cache.

    Raises:
        ConfigError: unknown activation or position of the normalizations, or H is not a multiple of `num_heads`.

    Example:
        bert = TransformerBlock(BlockSettings(AttentionSettings(num_heads=2), FeedForwardSettings(size=32)))
        bert(np.ones((1, 5, 8), "float32"))  # [1, 5, 8]
        t5 = TransformerBlock(
            BlockSettings(
                AttentionSettings(num_heads=2, use_bias=False, scale=False),
                FeedForwardSettings(size=32, activation="relu", use_bias=False),
                NormSettings("pre", epsilon=1e-6, rms=True),
                cross_attention=True,
            )
        )
        t5(np.ones((1, 5, 8), "float32"), BlockContext(memory=np.ones((1, 7, 8), "float32")))  # [1, 5, 8]
    """

    settings_class = BlockSettings

    def __init__(self, settings: BlockSettings, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        if settings.norm.position not in ("post", "pre"):
            raise ConfigError(f"the normalizations are {settings.norm.position!r}; give 'post' or 'pre'")
        self.settings, self.shares = settings, False
        self._activation_function = activation_function(settings.feed_forward.activation)

        def dropout(rate, name):
            return Dropout(rate, dtype=self.dtype_policy, name=name)

        self.attention_output_dropout = dropout(settings.attention.output_dropout, "attention_output_dropout")
        self.cross_attention_dropout = dropout(settings.attention.output_dropout, "cross_attention_output_dropout")
        self.inner_dropout = dropout(settings.feed_forward.inner_dropout, "inner_dropout")
        self.output_dropout = dropout(settings.feed_forward.output_dropout, "output_dropout")
        missing: Any = None
        self.attention = self.attention_layer_norm = missing
        self.cross_attention = self.cross_attention_layer_norm = missing
        self.intermediate = self.gate = self.output_dense = self.output_layer_norm = missing

    def share(self, block: "TransformerBlock", attention: bool = True, feed_forward: bool = True) -> None:
        """Uses parts of another, built block, with their normalizations. Call it before building."""
        self.shares = True
        if attention:
            self.attention, self.attention_layer_norm = block.attention, block.attention_layer_norm
        if feed_forward:
            self.intermediate, self.gate, self.output_dense = block.intermediate, block.gate, block.output_dense
            self.output_layer_norm = block.output_layer_norm

    def build(self, x_shape: Shape) -> None:
        size, attention = x_shape[-1], self.settings.attention
        if self.attention is None:
            self.attention = self._attention(size, attention, "attention")
            if self.settings.norm.of_attention:
                self.attention_layer_norm = self._normalization(size, "attention_layer_norm")
        if self.settings.cross_attention:
            unpacked = dataclasses.replace(attention, packed=False)
            self.cross_attention = self._attention(size, unpacked, "cross_attention")
            self.cross_attention_layer_norm = self._normalization(size, "cross_attention_layer_norm")
        if self.intermediate is None:
            self._build_feed_forward(size, self.settings.feed_forward)
            name = "output_layer_norm" if self.settings.norm.position == "post" else "feed_forward_layer_norm"
            self.output_layer_norm = self._normalization(size, name)

    def _build_feed_forward(self, size, settings):
        def layer(units, function, name, inputs=size, initializer_range=None):
            initializer = initializer_range or settings.initializer_range
            return dense(self, units, function, initializer, name, settings.use_bias, inputs=inputs)

        if not settings.gated:
            self.intermediate = layer(settings.size, self._activation_function, "intermediate")
        elif settings.packed:  # the activation is of one half only
            self.intermediate = layer(2 * settings.size, None, "intermediate")
        else:
            self.gate = layer(settings.size, self._activation_function, "gate")
            self.intermediate = layer(settings.size, None, "linear")
        self.output_dense = layer(size, None, "output", settings.size, settings.output_initializer_range)

    def _attention(self, size, settings, name):
        layer = Attention(settings, dtype=self.dtype_policy, name=name)
        layer.build((None, None, size))
        return layer

    def _normalization(self, size, name):
        settings = self.settings.norm
        options = {"epsilon": settings.epsilon, "dtype": self.dtype_policy, "name": name}
        layer = (
            RMSNormalization(**options)
            if settings.rms
            else keras.layers.LayerNormalization(center=settings.offset, **options)
        )
        layer.build((None, None, size))
        return layer

    def call(
        self, x: Tensor, context: Any = None, return_attention_scores: bool = False, training: bool = False
    ) -> Any:
        context = context or BlockContext()
        # Gradient checkpointing passes gradients to the arguments of `compute` alone, not to what it reads beside them.
        extra = {name: getattr(context, name) for name in ("bias", "memory")}
        extra = {
            name: value for name, value in extra.items() if value is not None and not isinstance(value, (tuple, list))
        }

        def compute(x, *tensors):
            traced = context._replace(**dict(zip(extra, tensors)))
            attended, *more = self._attend(x, traced, return_attention_scores, training)
            output = self._feed_forward(self._attend_to_memory(attended, traced, training), training)
            note(block_inputs=x, block_outputs=output)
            return results(output, *more)

        return recomputed(compute)(x, *extra.values())

    def _attend(self, x, context, return_attention_scores, training):
        """x after the self-attention, its probabilities and the new cache, None where they are not asked for."""
        queries = self._before(self.attention_layer_norm, x)
        mask, bias, positions, source = context.mask, context.bias, context.positions, None
        everywhere = self.settings.attention.packed or context.rotation is not None or context.cache is not None
        if positions is not None:
            x, normalized = gather_positions(x, positions), queries
            if not everywhere:
                queries = gather_positions(normalized, positions) if self.settings.norm.position == "pre" else x
                mask, bias, source = _rows(mask, positions), _rows(bias, positions), normalized
        attended = self.attention(
            queries,
            mask,
            source=source,
            bias=bias,
            rotation=context.rotation,
            cache=context.cache,
            cache_position=context.cache_position,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        attended, *more = attended if isinstance(attended, tuple) else (attended,)
        scores = more.pop(0) if return_attention_scores else None
        if positions is not None and everywhere:
            attended = gather_positions(attended, positions)
        attended = self.attention_output_dropout(attended, training=training)
        return self._after(self.attention_layer_norm, x + attended), scores, more.pop() if more else None

    def _attend_to_memory(self, x, context, training):
        if self.cross_attention is None:
            return x
        computed = isinstance(context.memory, (tuple, list))
        attended = self.cross_attention(
            self._before(self.cross_attention_layer_norm, x),
            context.memory_mask,
            training=training,
            **{"cache" if computed else "source": context.memory},
        )
        attended = self.cross_attention_dropout(attended, training=training)
        return self._after(self.cross_attention_layer_norm, x + attended)

    def _feed_forward(self, x, training):
        normalized = self._before(self.output_layer_norm, x)
        inner = self.intermediate(normalized)
        if self.gate is not None:
            inner = self.gate(normalized) * inner
        elif self.settings.feed_forward.gated:
            inner, gate = ops.split(inner, 2, axis=-1)
            inner = self._activation_function(inner) * gate
        inner = self.inner_dropout(inner, training=training)
        return self._after(self.output_layer_norm, x + self.output_dropout(self.output_dense(inner), training=training))

    def _before(self, layer_norm, x):
        return layer_norm(x) if self.settings.norm.position == "pre" and layer_norm is not None else x

    def _after(self, layer_norm, x):
        return layer_norm(x) if self.settings.norm.position == "post" and layer_norm is not None else x

    def compute_output_spec(
        self, x: Tensor, context: BlockContext | None = None, return_attention_scores: bool = False, **options: Options
    ) -> Any:
        context, attention = context or BlockContext(), self.settings.attention
        cache, positions = context.cache, context.positions
        everywhere = attention.packed or context.rotation is not None or cache is not None
        output = (*(x if positions is None else positions).shape[:2], x.shape[-1])
        rows = x if positions is None or everywhere else positions
        scores = (x.shape[0], attention.num_heads, rows.shape[1], x.shape[1] if cache is None else cache[0].shape[2])
        return results(
            keras.KerasTensor(output, dtype=self.compute_dtype),
            keras.KerasTensor(scores, dtype="float32") if return_attention_scores else None,
            None if cache is None else tuple(keras.KerasTensor(c.shape, dtype=c.dtype) for c in cache),
        )

    def get_config(self) -> Settings:
        if self.shares:
            raise ConfigError(
                f"'{self.name}' shares weights with another layer, which a copy of it alone would not; copy the model "
                "as a whole: type(model).from_config(model.get_config())"
            )
        return super().get_config()


def _rows(mask, positions):
    """The mask of the queries at `positions`: [B, n, P, S] of [B, n, S, S]; one for all queries as it is."""
    if mask is None or len(mask.shape) < 2 or mask.shape[-2] == 1:
        return mask
    mask = ops.reshape(mask, (*[1] * (4 - len(mask.shape)), *ops.shape(mask)))
    batch, heads, length, keys = ops.shape(mask)
    rows = ops.reshape(ops.moveaxis(mask, 1, 2), (batch, length, heads * keys))
    rows = gather_positions(rows, positions)
    return ops.moveaxis(ops.reshape(rows, (*ops.shape(rows)[:2], heads, keys)), 2, 1)
