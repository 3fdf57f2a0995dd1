"""What a transformer block is made of, in groups: the settings of `TransformerBlock` and of its `Attention`."""

import dataclasses
from typing import Literal

#: The standard deviation of the truncated normal that fills a kernel, or the name of another initializer of Keras.
Initializer = float | str


@dataclasses.dataclass(frozen=True)
class NormSettings:
    """The normalizations of a block.

    Args:
        position: "post", after each part (Vaswani et al. 2017), or "pre", before it (GPT-2, T5, Llama).
        epsilon: added to the variance.
        rms: divide by the root mean square instead of the standard deviation (Zhang and Sennrich 2019).
        offset: whether a layer normalization has an offset beside its scale.
        of_attention: whether there is a normalization for the attention. The first layer of ModernBERT, whose
            embeddings are normalized already, has none.

    Example:
        NormSettings("pre", epsilon=1e-6, rms=True)  # T5's and Llama's
    """

    position: Literal["post", "pre"] = "post"
    epsilon: float = 1e-12
    rms: bool = False
    offset: bool = True
    of_attention: bool = True


@dataclasses.dataclass(frozen=True)
class AttentionSettings:
    """An attention with several heads.

    Args:
        num_heads: n.
        num_key_value_heads: heads of keys and values, a divisor of n: each serves n / num_key_value_heads heads of
            queries (Ainslie et al. 2023, arXiv:2305.13245; 1 is multi-query attention). None for n.
        head_size: d; None for H / n.
        dropout: rate on the probabilities.
        output_dropout: rate on the result, before it is added to the residual stream.
        use_bias: whether the projections have biases.
        scale: whether the scores are divided by sqrt(d). T5's are not.
        packed: one projection "query_key_value" [H, (n + 2 num_key_value_heads) * d] instead of "query", "key" and
            "value", as ModernBERT's checkpoints store it. For self-attention alone. Separate ones are 1 to 2 % faster in
            float32 on a CPU.
        rotary_pairs: the pairs of numbers that rotary positions turn: "halves", i and i + d/2 (GPT-NeoX, Llama,
            ModernBERT), or "interleaved", 2 i and 2 i + 1 (Su et al. 2021, GPT-J).
        initializer_range: of the kernels.
        query_initializer_range, output_initializer_range: of the query's and the output's kernel; None for
            `initializer_range`.

    Example:
        AttentionSettings(num_heads=12, dropout=0.1, output_dropout=0.1)  # BERT's
    """

    num_heads: int
    num_key_value_heads: int | None = None
    head_size: int | None = None
    dropout: float = 0.0
    output_dropout: float = 0.0
    use_bias: bool = True
    scale: bool = True
    packed: bool = False
    rotary_pairs: Literal["halves", "interleaved"] = "halves"
    initializer_range: Initializer = 0.02
    query_initializer_range: Initializer | None = None
    output_initializer_range: Initializer | None = None


@dataclasses.dataclass(frozen=True)
class FeedForwardSettings:
    """The network of a block: W2 f(x) with f(x) = activation(W1 x), or gated, activation(W0 x) * W1 x.

    Args:
        size: I, the width of f(x).
        activation: name in `bert_tf.layers.activations`.
        gated: whether it is gated (Shazeer 2020, arXiv:2002.05202).
        packed: of a gated network: one kernel "intermediate" [H, 2 * I] instead of "gate" and "linear", as ModernBERT's
            checkpoints store it.
        use_bias: whether the layers have biases.
        inner_dropout: rate on f(x).
        output_dropout: rate on the result, before it is added to the residual stream.
        initializer_range: of the kernels.
        output_initializer_range: of the kernel of W2; None for `initializer_range`.

    Example:
        FeedForwardSettings(size=2048, activation="silu", gated=True, use_bias=False)  # Llama's
    """

    size: int
    activation: str = "gelu_tanh"
    gated: bool = False
    packed: bool = False
    use_bias: bool = True
    inner_dropout: float = 0.0
    output_dropout: float = 0.0
    initializer_range: Initializer = 0.02
    output_initializer_range: Initializer | None = None


@dataclasses.dataclass(frozen=True)
class BlockSettings:
    """All settings of a `TransformerBlock`.

    Args:
        attention: of the self-attention, and of the cross-attention, which is never packed.
        feed_forward: of the feed-forward network.
        norm: of the normalizations.
        cross_attention: whether there is an attention to a second text, after the self-attention.

    Example:
        bert = BlockSettings(AttentionSettings(num_heads=2, dropout=0.1), FeedForwardSettings(size=32))
        llama = BlockSettings(
            AttentionSettings(num_heads=4, num_key_value_heads=2, use_bias=False),
            FeedForwardSettings(size=32, activation="silu", gated=True, use_bias=False),
            NormSettings("pre", epsilon=1e-6, rms=True),
        )
    """

    attention: AttentionSettings
    feed_forward: FeedForwardSettings
    norm: NormSettings = NormSettings()
    cross_attention: bool = False
