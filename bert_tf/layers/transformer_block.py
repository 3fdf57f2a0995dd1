"""One layer of a transformer."""

import keras
from keras import ops

from bert_tf.backend import Dropout, LayerNormalization, RMSNormalization, recomputed
from bert_tf.errors import ConfigError
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.attention import Attention, results
from bert_tf.layers.dense import dense
from bert_tf.layers.gather import gather_positions
from bert_tf.layers.internals import note


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(keras.layers.Layer):
    """Attention and a feed-forward network, each with a residual connection and a normalization.

    norm="post", Vaswani et al. 2017 and `transformer_model` in google-research/bert `modeling.py`:

        x = norm(x + dropout(attention(x)))
        x = norm(x + dropout(W2 f(x))),                f(x) = activation(W1 x)

    norm="pre", as GPT-2, T5 and ModernBERT:

        x = x + dropout(attention(norm(x)))
        x = x + dropout(W2 f(norm(x)))

    With `gated`, f(x) = activation(W0 x) * W1 x (Shazeer 2020, arXiv:2002.05202). With
    `cross_attention` there is a third part between the two, whose keys and values come from `source`.

    Args:
        num_heads: attention heads.
        intermediate_size: I, the width of f(x).
        activation: name in `bert_tf.layers.activations`.
        dropout: rate on all branches before they are added.
        attention_dropout: rate on the attention probabilities.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills the kernels; or the name of another
            initializer of Keras, "glorot_uniform" for example.
        norm: "post" or "pre".
        rms_norm: divide by the root mean square instead of the standard deviation (Zhang and Sennrich 2019).
        norm_offset: whether a layer normalization has an offset beside its scale.
        attention_norm: whether there is a normalization for the attention. The first layer of ModernBERT, whose
            embeddings are normalized already, has none.
        use_bias: whether the projections have biases.
        attention_bias: whether those of the attentions have; None for `use_bias`.
        gated: whether the feed-forward network is gated; W1 is then [H, 2 * I].
        cross_attention: whether there is an attention to a `source`.
        head_size, scale, query_initializer_range: of `Attention`.
        fused: of the self-attention; and a gated network has one kernel [H, 2 * I] instead of "gate" and
            "linear", as ModernBERT's checkpoints store it.
        inner_dropout: rate on f(x).
        attention_output_dropout: rate on the attention's branch; None for `dropout`.
        output_initializer_range: of the kernels whose results are added to x; None for `initializer_range`.
        attention_output_initializer_range: the same of the attentions only; None for `output_initializer_range`.

    Call arguments:
        x: float [B, S, H].
        attention_mask, bias, rotation, cache, cache_position, return_attention_scores: of `Attention`, for the
            self-attention.
        source: float [B, T, H], for the cross-attention.
        source_mask: float, broadcast to [B, n, S, T]; None for no mask.
        source_cache: pair of float [B, n, T, d], of `cross_attention.keys_and_values`; instead of `source`.
        positions: int [B, P], the positions at which the result is wanted; None for all, P = S. With `fused` or
            `rotation` the attention is computed at all positions nevertheless, and so are its scores.
        training: whether dropout is active.

    Returns:
        float [B, P, H] in the compute dtype. With `return_attention_scores` or `cache_position` a tuple: that;
        float32 [B, n, P, S], the probabilities before dropout; the new cache.

    Raises:
        ConfigError: unknown activation or `norm`, or H is not a multiple of `num_heads`.

    Example:
        bert = TransformerBlock(2, 32, "gelu_tanh", 0.1, 0.1, 1e-12, 0.02)
        bert(np.ones((1, 5, 8), "float32"))  # [1, 5, 8]
        t5 = TransformerBlock(
            2, 32, "relu", 0.1, 0.1, 1e-6, 0.02, norm="pre", rms_norm=True, use_bias=False, scale=False,
            inner_dropout=0.1, cross_attention=True,
        )
        t5(np.ones((1, 5, 8), "float32"), source=np.ones((1, 7, 8), "float32"))  # [1, 5, 8]
    """

    def __init__(
        self,
        num_heads,
        intermediate_size,
        activation,
        dropout,
        attention_dropout,
        layer_norm_epsilon,
        initializer_range,
        norm="post",
        rms_norm=False,
        norm_offset=True,
        attention_norm=True,
        use_bias=True,
        attention_bias=None,
        gated=False,
        cross_attention=False,
        head_size=None,
        scale=True,
        fused=False,
        inner_dropout=0.0,
        attention_output_dropout=None,
        output_initializer_range=None,
        attention_output_initializer_range=None,
        query_initializer_range=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ConfigError(f"norm is {norm!r}; give 'post' or 'pre'")
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.norm = norm
        self.rms_norm = rms_norm
        self.norm_offset = norm_offset
        self.attention_norm = attention_norm
        self.use_bias = use_bias
        self.attention_bias = use_bias if attention_bias is None else attention_bias
        self.gated = gated
        self.has_cross_attention = cross_attention
        self.head_size = head_size
        self.scale = scale
        self.fused = fused
        self.output_range = initializer_range if output_initializer_range is None else output_initializer_range
        self.attention_output_range = attention_output_initializer_range or self.output_range
        self.query_range = query_initializer_range
        self._activation_function = activation_function(activation)

        def dropout_layer(rate, name):
            return Dropout(rate, dtype=self.dtype_policy, name=name)

        rate = dropout if attention_output_dropout is None else attention_output_dropout
        self.attention_output_dropout = dropout_layer(rate, "attention_dropout")
        self.cross_attention_dropout = dropout_layer(dropout, "cross_attention_dropout")
        self.inner_dropout = dropout_layer(inner_dropout, "inner_dropout")
        self.output_dropout = dropout_layer(dropout, "output_dropout")
        self.attention = self.attention_layer_norm = None
        self.cross_attention = self.cross_attention_layer_norm = None
        self.intermediate = self.gate = self.output_dense = self.output_layer_norm = None

    def share_attention(self, block):
        """Uses the attention of another, built block, with its normalization. Call it before building."""
        self.attention = block.attention
        self.attention_layer_norm = block.attention_layer_norm

    def share_feed_forward(self, block):
        """Uses the feed-forward network of another, built block, with its normalization. As above."""
        self.intermediate, self.gate = block.intermediate, block.gate
        self.output_dense = block.output_dense
        self.output_layer_norm = block.output_layer_norm

    def build(self, x_shape):
        size = x_shape[-1]
        if self.attention is None:
            self.attention = self._attention(size, self.fused, "attention")
            if self.attention_norm:
                self.attention_layer_norm = self._normalization(size, "attention_layer_norm")
        if self.has_cross_attention:
            self.cross_attention = self._attention(size, False, "cross_attention")
            self.cross_attention_layer_norm = self._normalization(size, "cross_attention_layer_norm")
        if self.intermediate is None:
            # A gated network's activation is of one half only.
            function, factor = (None, 1 + self.fused) if self.gated else (self._activation_function, 1)
            inner, bias, name = self.intermediate_size, self.use_bias, "intermediate"
            if self.gated and not self.fused:
                name, gate = "linear", self._activation_function
                self.gate = dense(self, inner, gate, self.initializer_range, "gate", bias, inputs=size)
            self.intermediate = dense(self, factor * inner, function, self.initializer_range, name, bias, inputs=size)
            self.output_dense = dense(self, size, None, self.output_range, "output", bias, inputs=inner)
            name = "output_layer_norm" if self.norm == "post" else "feed_forward_layer_norm"
            self.output_layer_norm = self._normalization(size, name)

    def _attention(self, size, fused, name):
        layer = Attention(
            num_heads=self.num_heads,
            dropout=self.attention_dropout,
            initializer_range=self.initializer_range,
            output_initializer_range=self.attention_output_range,
            query_initializer_range=self.query_range,
            head_size=self.head_size,
            use_bias=self.attention_bias,
            scale=self.scale,
            fused=fused,
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build((None, None, size))
        return layer

    def _normalization(self, size, name):
        options = {"epsilon": self.layer_norm_epsilon, "dtype": self.dtype_policy, "name": name}
        layer = RMSNormalization(**options) if self.rms_norm else LayerNormalization(center=self.norm_offset, **options)
        layer.build((None, None, size))
        return layer

    def call(
        self,
        x,
        attention_mask=None,
        rotation=None,
        bias=None,
        source=None,
        source_mask=None,
        cache=None,
        cache_position=None,
        source_cache=None,
        positions=None,
        return_attention_scores=False,
        training=False,
    ):
        context = {"rotation": rotation, "cache": cache, "cache_position": cache_position}
        context = {name: value for name, value in context.items() if value is not None}
        differentiable = {"x": x, "bias": bias, "source": source}
        names = [name for name, value in differentiable.items() if value is not None]

        def compute(*tensors):
            given = differentiable | dict(zip(names, tensors))
            x, more = self._attend(
                given["x"], attention_mask, given["bias"], context, positions, return_attention_scores, training
            )
            if self.cross_attention is not None:
                normalized = self._before(self.cross_attention_layer_norm, x)
                attended = self.cross_attention(
                    normalized, source_mask, source=given["source"], cache=source_cache, training=training
                )
                x = self._after(
                    self.cross_attention_layer_norm, x + self.cross_attention_dropout(attended, training=training)
                )
            output = self._feed_forward(x, training)
            note(block_inputs=given["x"], block_outputs=output)
            return results(output, *more)

        return recomputed(compute)(*(differentiable[name] for name in names))

    def _attend(self, x, mask, bias, context, positions, return_attention_scores, training):
        """x after the attention, and a pair (scores, cache), None where they are not asked for."""
        queries = self._before(self.attention_layer_norm, x)
        if positions is not None:
            everywhere = self.fused or bool(context)
            x, normalized = gather_positions(x, positions), queries
            if not everywhere:
                queries = gather_positions(normalized, positions) if self.norm == "pre" else x
                mask, bias, context = _rows(mask, positions), _rows(bias, positions), {"source": normalized}
        if bias is not None:
            context = context | {"bias": bias}
        options = {"return_attention_scores": return_attention_scores, "training": training}
        attended = self.attention(queries, mask, **context, **options)
        more = [None, None]
        if isinstance(attended, tuple):
            attended, *found = attended
            scores = found.pop(0) if return_attention_scores else None
            more = [scores, found.pop() if found else None]
        if positions is not None and everywhere:
            attended = gather_positions(attended, positions)
        attended = self.attention_output_dropout(attended, training=training)
        return self._after(self.attention_layer_norm, x + attended), more

    def _feed_forward(self, x, training):
        normalized = self._before(self.output_layer_norm, x)
        inner = self.intermediate(normalized)
        if self.gate is not None:
            inner = self.gate(normalized) * inner
        elif self.gated:
            inner, gate = ops.split(inner, 2, axis=-1)
            inner = self._activation_function(inner) * gate
        inner = self.inner_dropout(inner, training=training)
        return self._after(self.output_layer_norm, x + self.output_dropout(self.output_dense(inner), training=training))

    def _before(self, layer_norm, x):
        return layer_norm(x) if self.norm == "pre" and layer_norm is not None else x

    def _after(self, layer_norm, x):
        return layer_norm(x) if self.norm == "post" and layer_norm is not None else x

    def compute_output_spec(
        self,
        x,
        attention_mask=None,
        rotation=None,
        bias=None,
        *,
        cache=None,
        cache_position=None,
        positions=None,
        return_attention_scores=False,
        **others,
    ):
        everywhere = self.fused or rotation is not None or cache is not None
        output = (*(x if positions is None else positions).shape[:2], x.shape[-1])
        rows = x if positions is None or everywhere else positions
        scores = (x.shape[0], self.num_heads, rows.shape[1], x.shape[1] if cache is None else cache[0].shape[2])
        return results(
            keras.KerasTensor(output, dtype=self.compute_dtype),
            keras.KerasTensor(scores, dtype="float32") if return_attention_scores else None,
            None if cache_position is None else tuple(keras.KerasTensor(c.shape, dtype=c.dtype) for c in cache),
        )


def _rows(mask, positions):
    """The mask of the queries at `positions`: [B, n, P, S] of [B, n, S, S]; one for all queries as it is."""
    if mask is None or len(mask.shape) < 2 or mask.shape[-2] == 1:
        return mask
    mask = ops.reshape(mask, (*[1] * (4 - len(mask.shape)), *ops.shape(mask)))
    batch, heads, length, keys = ops.shape(mask)
    rows = ops.reshape(ops.moveaxis(mask, 1, 2), (batch, length, heads * keys))
    rows = gather_positions(rows, positions)
    return ops.moveaxis(ops.reshape(rows, (*ops.shape(rows)[:2], heads, keys)), 2, 1)
