"""Layers on top of an encoder: poolers, and a linear classifier."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dropout, Layer, RandomNormal, TruncatedNormal
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.block_settings import Initializer
from bert_tf.layers.parts import dense, gather_positions
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class Pooler(Layer):
    """A dense layer with an activation on the first token's vector.

    `BertModel.pooled_output` in google-research/bert `modeling.py`, there with tanh.

    Args:
        size: width of the result.
        activation: name in `bert_tf.layers.activations`.
        initializer_range: standard deviation of the truncated normal that fills the kernel.

    Call arguments:
        sequence_output: float [B, S, H].

    Returns:
        float [B, size] in the compute dtype.

    Raises:
        ConfigError: unknown activation.

    Example:
        Pooler(8, "tanh", 0.02)(np.ones((2, 5, 8), "float32"))  # [2, 8]
    """

    initializer = TruncatedNormal

    def __init__(self, size: int, activation: str, initializer_range: Initializer, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        kernels = self.initializer(stddev=initializer_range)
        self.dense = dense(self, size, activation_function(activation), kernels, "dense")

    def build(self, sequence_shape: Shape) -> None:
        self.dense.build((None, sequence_shape[-1]))

    def call(self, sequence_output: Tensor) -> Tensor:
        return self.dense(sequence_output[:, 0])


@keras.saving.register_keras_serializable("bert_tf")
class LastTokenPooler(Pooler):
    """A dense layer with an activation on the vector of the last real token.

    `summarize_sequence` with "last" in zihangdai/xlnet `modeling.py`, there with tanh. The original
    takes the last position and therefore pads on the left; here the mask says which token is the last, so
    padding may be on either side. The dropout that follows in the original belongs to the head here.

    Args:
        size, activation: as in `Pooler`.
        initializer_range: standard deviation of the normal that fills the kernel.

    Call arguments:
        sequence_output: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens; None means that all are real.

    Returns:
        float [B, size] in the compute dtype. A sequence without a real token gets the vector of
        its first position.

    Example:
        LastTokenPooler(8, "tanh", 0.02)(np.ones((2, 5, 8), "float32"))  # [2, 8]
    """

    initializer = RandomNormal

    def call(self, sequence_output: Tensor, padding_mask: Tensor = None) -> Tensor:
        if padding_mask is None:
            return self.dense(sequence_output[:, -1])
        return self.dense(gather_positions(sequence_output, last_positions(padding_mask))[:, 0])


@keras.saving.register_keras_serializable("bert_tf")
class LastToken(Layer):
    """The vector of the last real token: of a causal model the only one that has seen the whole text.

    As GPT-1 and GPT-2 are fine-tuned (Radford et al. 2018, section 3.2); it has no weights.

    Args:
        skipped_id: a token that does not count as the last one; None for no such token. Hugging Face's GPT classifiers
            skip their `pad_token_id`, which may also end a text.

    Call arguments:
        sequence_output: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens, padding on either side; None means that all are real.
        token_ids: int [B, S]; needed with a `skipped_id`.

    Returns:
        float [B, H]. A sequence without such a token gets the vector of its first position.

    Example:
        LastToken()(np.ones((2, 5, 8), "float32"))  # [2, 8]
    """

    def __init__(self, skipped_id: int | None = None, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.skipped_id = skipped_id

    def call(self, sequence_output: Tensor, padding_mask: Tensor = None, token_ids: Tensor = None) -> Tensor:
        mask = self.mask(padding_mask, token_ids)
        return sequence_output[:, -1] if mask is None else gather_positions(sequence_output, last_positions(mask))[:, 0]

    def mask(self, padding_mask: Tensor, token_ids: Tensor) -> Tensor:
        """bool [B, S], True at the tokens that count; None where all do."""
        if self.skipped_id is None:
            return padding_mask
        other = ops.not_equal(token_ids, self.skipped_id)
        return other if padding_mask is None else ops.logical_and(other, ops.cast(padding_mask, "bool"))


@keras.saving.register_keras_serializable("bert_tf")
class ClassificationHead(Layer):
    """Dropout and a linear layer: logits for classes, for a regression value, or for tags.

    Some families have a dense layer with an activation before it (`bert_tf.models.task_heads.TaskHead`).

    Args:
        num_outputs: K.
        dropout: rate on the input of the linear layer.
        initializer_range: standard deviation of the truncated normal that fills the kernels.
        activation: of a dense layer of width H before the dropout; None for no such layer.
        hidden_bias: whether that dense layer has a bias.
        norm_epsilon: of a layer normalization without a bias after that dense layer; None for none.
        input_dropout: whether there is dropout before that dense layer, too.
        use_bias: whether the linear layer has a bias.
        initializer: the name of another initializer of the linear layer; None for the truncated normal.
        hidden_size: width of the dense layer; None for H.

    Call arguments:
        x: float [..., H]: a pooled output for one result a text, a sequence output for one a token.
        training: whether dropout is active.

    Returns:
        float32 [..., K].

    Example:
        ClassificationHead(3, dropout=0.1, initializer_range=0.02)(np.ones((2, 8), "float32"))  # [2, 3]
    """

    def __init__(
        self,
        num_outputs: int,
        dropout: float,
        initializer_range: Initializer,
        activation: str | None = None,
        hidden_bias: bool = True,
        norm_epsilon: float | None = None,
        input_dropout: bool = False,
        use_bias: bool = True,
        initializer: str | None = None,
        hidden_size: int | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.activation = activation and activation_function(activation)
        self.hidden_bias, self.initializer_range = hidden_bias, initializer_range
        self.hidden: Any = None
        self.norm = self.input_dropout = None
        if activation and norm_epsilon is not None:
            self.norm = keras.layers.LayerNormalization(
                epsilon=norm_epsilon, center=False, dtype=self.dtype_policy, name="layer_norm"
            )
        if activation and input_dropout:
            self.input_dropout = Dropout(dropout, dtype=self.dtype_policy, name="input_dropout")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = dense(self, num_outputs, None, initializer or initializer_range, "dense", use_bias=use_bias)

    def build(self, x_shape: Shape) -> None:
        if self.activation:
            size = self.hidden_size or x_shape[-1]
            self.hidden = dense(
                self, size, self.activation, self.initializer_range, "hidden", use_bias=self.hidden_bias
            )
            self.hidden.build(x_shape)
            x_shape = (*x_shape[:-1], size)
        if self.norm:
            self.norm.build(x_shape)
        self.dense.build(x_shape)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if self.hidden:
            x = self.hidden(self.input_dropout(x, training=training) if self.input_dropout else x)
            x = self.norm(x) if self.norm else x
        return ops.cast(self.dense(self.dropout(x, training=training)), "float32")


def last_positions(padding_mask: Tensor) -> Tensor:
    """The position of the last real token: bool [B, S] -> int32 [B, 1]; 0 where there is none."""
    positions = ops.arange(ops.shape(padding_mask)[1], dtype="int32")
    return ops.max(ops.where(ops.cast(padding_mask, "bool"), positions, 0), axis=1, keepdims=True)
