"""Vectors of words from their characters, by convolutions and highway layers (Kim et al. 2016, Jozefowicz et al. 2016)."""

from collections.abc import Iterable, Sequence

import keras
from keras import ops

from bert_tf.backend import Layer, RandomUniform
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.parts import dense, range_of
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class CharacterEmbeddings(Layer):
    """A vector for each word, from the ids of its characters: the input of ELMo.

    Convolutions of several widths over the characters' vectors, each without padding; the largest value of each filter
    over the places in the word, then the activation; highway layers y = t g(x W + b) + (1 - t) x with ReLU for g; a
    projection.

    Args:
        vocabulary_size: rows of the table of characters. Row 0 is for padding words.
        character_size: width of a character's vector.
        filters: pairs (width, number) of the convolutions.
        highways: highway layers.
        size: width of the result.
        activation: of the convolutions.
        initializer_range: half the width of the uniform distribution of the table; the standard deviations of the other
            kernels are those of bilm-tf.

    Call arguments:
        token_ids: int [B, S, C], the characters of each word.

    Returns:
        float [B, S, size] in the compute dtype.

    Example:
        layer = CharacterEmbeddings(262, 4, [(1, 8), (2, 8)], highways=1, size=6)
        layer(np.ones((2, 5, 50), "int32")).shape  # [2, 5, 6]

    Source: Peters et al. 2018 (arXiv:1802.05365), section 3.4; allenai/bilm-tf `training.py`,
        `_build_word_char_embeddings`.
    The carry gate there is t, whose bias starts from -2.
    """

    def __init__(
        self,
        vocabulary_size: int,
        character_size: int,
        filters: Iterable[Sequence[int]],
        highways: int,
        size: int,
        activation: str = "relu",
        initializer_range: float = 1.0,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.character_size = vocabulary_size, character_size
        self.filters = [tuple(pair) for pair in filters]
        self.activation, self.initializer_range = activation_function(activation), initializer_range
        self.highway_count, self.size = highways, size

    def build(self, token_ids_shape: Shape | None = None) -> None:
        shape = (self.vocabulary_size, self.character_size)
        initializer = _zero_row(RandomUniform(-self.initializer_range, self.initializer_range))
        self.token_table = self.add_weight(shape=shape, initializer=initializer, name="character_embeddings")
        self.kernels, self.biases = [], []
        for i, (width, count) in enumerate(self.filters):
            # bilm-tf: for ReLU uniform in [-0.05, 0.05], for tanh a normal of sqrt(1 / (width * size)).
            kernel_shape = (width, self.character_size, count)
            self.kernels.append(
                self.add_weight(
                    shape=kernel_shape, initializer=RandomUniform(-0.05, 0.05), name=f"convolution_{i}_kernel"
                )
            )
            self.biases.append(self.add_weight(shape=(count,), initializer="zeros", name=f"convolution_{i}_bias"))
        width = sum(count for _, count in self.filters)
        deviation, relu = range_of(width**-0.5), activation_function("relu")
        self.highways = [
            (
                dense(self, width, None, deviation, f"highway_{i}_carry"),
                dense(self, width, relu, deviation, f"highway_{i}_transform"),
            )
            for i in range(self.highway_count)
        ]
        self.projection = dense(self, self.size, None, deviation, "projection", inputs=width)
        for carry, transform in self.highways:
            carry.bias_initializer = keras.initializers.Constant(-2.0)
            carry.build((None, width))
            transform.build((None, width))

    def call(self, token_ids: Tensor) -> Tensor:
        batch, length, characters = ops.shape(token_ids)
        table = ops.cast(self.token_table, self.compute_dtype)
        x = ops.take(table, ops.reshape(token_ids, (-1, characters)), axis=0)  # [B S, C, character_size]
        parts = []
        for kernel, bias in zip(self.kernels, self.biases):
            places = ops.conv(x, ops.cast(kernel, x.dtype), padding="valid", data_format="channels_last")
            parts.append(self.activation(ops.max(places, axis=1) + ops.cast(bias, x.dtype)))
        x = ops.concatenate(parts, axis=-1)
        for carry, transform in self.highways:
            gate = ops.sigmoid(carry(x))
            x = gate * transform(x) + (1 - gate) * x
        return ops.reshape(self.projection(x), (batch, length, self.size))


def _zero_row(initializer):
    """The initializer with zeros in the first row."""

    def initialize(shape, dtype=None):
        return initializer(shape, dtype) * ops.cast(ops.arange(shape[0]) > 0, dtype)[:, None]

    return initialize
