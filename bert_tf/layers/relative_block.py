"""One layer of XLNet, for one stream or two."""

from typing import Any, NamedTuple

import keras

from bert_tf.backend import Dropout, RandomNormal, recomputed
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.block_settings import BlockSettings
from bert_tf.layers.parts import SettingsLayer, dense
from bert_tf.layers.relative_attention import RelativeAttention
from bert_tf.types import Options, Settings, Shape, Tensor


class RelativeContext(NamedTuple):
    """What a `RelativeBlock` reads beside its input: tensors, or None for what there is not.

    Args:
        positions, mask, differs, backward: of `RelativeAttention`.
        memory: float [B, L, M, H], of all layers.
        query_positions, query_mask, query_differs: the same for the query stream, with `query_positions` int [B, P].

    Example:
        tokens = np.zeros((2, 5), "int32")
        positions = RelativePositions(8, clamp_length=None, dropout=0.0)(tokens)
        RelativeContext(positions, StreamMask()(tokens), SegmentsDiffer()(tokens))
    """

    positions: Any
    mask: Any
    differs: Any
    memory: Any = None
    backward: Any = None
    query_positions: Any = None
    query_mask: Any = None
    query_differs: Any = None


@keras.saving.register_keras_serializable("bert_tf")
class RelativeBlock(SettingsLayer):
    """Relative attention and a two-layer network, each with a residual connection normalized after.

    `rel_multihead_attn` or `two_stream_rel_attn`, then `positionwise_ffn`, in zihangdai/xlnet
    `modeling.py`. Both streams have the same weights. Unlike BERT's layer it has dropout inside
    the feed-forward network as well.

    Args:
        index: which of the model's layers this is, from 0: its part of the memory.
        settings: a `BlockSettings`; read are the heads of the attention and its dropout, the size, activation, output
            dropout (on both branches, and inside the network) and initializer range of the network, and the epsilon of
            the normalizations.

    Call arguments:
        x: float [B, S, H], the content stream; or a dict of it as "content" and of the query stream as "query",
            [B, P, H].
        context: a `RelativeContext`.
        return_attention_scores: whether the probabilities of the content stream are returned too.
        training: whether dropout is active.

    Returns:
        As `x`; with `return_attention_scores` a tuple of that and float32 [B, n, S, M + S].

    Raises:
        ConfigError: unknown activation, or H is not a multiple of `num_heads`.

    Example:
        tokens, x = np.zeros((2, 5), "int32"), np.ones((2, 5, 8), "float32")
        positions = RelativePositions(8, clamp_length=None, dropout=0.0)(tokens)
        block = RelativeBlock(0, BlockSettings(AttentionSettings(2), FeedForwardSettings(32)))
        context = RelativeContext(positions, StreamMask()(tokens), SegmentsDiffer()(tokens))
        block(x, context)  # [2, 5, 8]
    """

    settings_class = BlockSettings

    def __init__(self, index: int, settings: BlockSettings, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.index, self.settings, self.num_heads = index, settings, settings.attention.num_heads
        self._activation_function = activation_function(settings.feed_forward.activation)
        rate = settings.feed_forward.output_dropout
        # In the order in which they are applied.
        self.dropouts = {
            stream: [Dropout(rate, dtype=self.dtype_policy, name=f"{stream}_dropout_{i}") for i in range(3)]
            for stream in ("content", "query")
        }

    def build(self, content_shape: Shape) -> None:
        hidden_size, policy, network = content_shape[-1], self.dtype_policy, self.settings.feed_forward

        def layer_norm(name):
            layer = keras.layers.LayerNormalization(epsilon=self.settings.norm.epsilon, dtype=policy, name=name)
            layer.build((None, None, hidden_size))
            return layer

        self.attention = RelativeAttention(
            num_heads=self.num_heads,
            dropout=self.settings.attention.dropout,
            initializer_range=self.settings.attention.initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention.build(content_shape)
        self.attention_layer_norm = layer_norm("attention_layer_norm")
        size, kernels = network.size, RandomNormal(stddev=network.initializer_range)
        function = self._activation_function
        self.intermediate = dense(self, size, function, kernels, "intermediate", inputs=hidden_size)
        self.output_dense = dense(self, hidden_size, None, kernels, "output", inputs=size)
        self.output_layer_norm = layer_norm("output_layer_norm")

    def get_config(self) -> Settings:
        return {**super().get_config(), "index": self.index}

    def call(
        self, x: Tensor, context: RelativeContext, return_attention_scores: bool = False, training: bool = False
    ) -> Any:
        streams = x if isinstance(x, dict) else {"content": x}

        def compute(*tensors):
            stream_of = dict(zip(streams, tensors))
            outputs = self.attention(
                stream_of["content"],
                context.positions,
                context.mask,
                context.differs,
                memory=None if context.memory is None else context.memory[:, self.index],
                backward=context.backward,
                query=self._query(stream_of, context),
                return_attention_scores=return_attention_scores,
                training=training,
            )
            for name, stream in stream_of.items():
                outputs[name] = self._after_attention(stream, outputs[name], self.dropouts[name], training)
            return outputs

        outputs = recomputed(compute)(*streams.values())
        result = {name: outputs[name] for name in streams} if isinstance(x, dict) else outputs["content"]
        return (result, outputs["attention_scores"]) if return_attention_scores else result

    def _query(self, streams, context):
        """What `RelativeAttention` takes of the query stream."""
        if "query" not in streams:
            return None
        return {
            "states": streams["query"],
            "positions": context.query_positions,
            "mask": context.query_mask,
            "differs": context.query_differs,
        }

    def _after_attention(self, x, attended, dropouts, training):
        x = self.attention_layer_norm(x + dropouts[0](attended, training=training))
        transformed = dropouts[1](self.intermediate(x), training=training)
        transformed = dropouts[2](self.output_dense(transformed), training=training)
        return self.output_layer_norm(x + transformed)

    def compute_output_spec(
        self, x: Tensor, context: RelativeContext, return_attention_scores: bool = False, **options: Options
    ) -> Any:
        outputs = keras.tree.map_structure(lambda stream: keras.KerasTensor(stream.shape, self.compute_dtype), x)
        if not return_attention_scores:
            return outputs
        batch, length, _ = (x["content"] if isinstance(x, dict) else x).shape
        return outputs, keras.KerasTensor((batch, self.num_heads, length, None), dtype="float32")
