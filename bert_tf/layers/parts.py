"""Small parts of other layers: normalization, dense layers, the table of an output layer, the vectors at some positions."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dense, Layer, RandomNormal, initializer
from bert_tf.config import build, to_dict
from bert_tf.layers.block_settings import Initializer
from bert_tf.types import Function, Options, Settings, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class RMSNormalization(keras.layers.RMSNormalization):
    """Keras's own, over the last axis (Zhang and Sennrich 2019, equation 4), whose scale stays float32.

    x / sqrt(mean(x^2) + epsilon) * scale, without mean and offset, as T5 has it.

    Example:
        RMSNormalization(epsilon=1e-6)(np.ones((2, 3, 8), "float32"))  # [2, 3, 8]
    """

    def build(self, input_shape: Any) -> None:
        # Not cast under mixed precision, as in Keras's layer normalization.
        self.scale = self.add_weight(name="scale", shape=(input_shape[-1],), initializer="ones", autocast=False)


class SettingsLayer(Layer):
    """A layer whose first argument is a dataclass of settings, of which Keras writes the fields.

    Attributes:
        settings_class: the dataclass.
        settings: what the constructor was given.
    """

    settings_class: Any = None
    settings: Any

    def get_config(self) -> Settings:
        return {**super().get_config(), "settings": to_dict(self.settings)}

    @classmethod
    def from_config(cls, config: Settings) -> Any:
        return cls(**config | {"settings": build(cls.settings_class, config["settings"])})


def range_of(deviation: float) -> float:
    """The `initializer_range` of a truncated normal that has this standard deviation.

    BERT's cuts a normal of 0.02 at two deviations, and what is left has 0.0176. Others name what their weights have.
    """
    return deviation / 0.87962566


def dense(
    layer: keras.Layer,
    units: int,
    activation: Function | None,
    initializer_range: Any,
    name: str,
    use_bias: bool = True,
    inputs: int | None = None,
) -> Dense:
    """A `Dense` inside another layer: its kernel from a truncated normal or another distribution, its bias zeros.

    Args:
        layer: the layer around it, which gives the dtype policy.
        units: width of the result.
        activation: function or None.
        initializer_range: standard deviation of the normal; or the name of another initializer of Keras.
        name: of the layer.
        use_bias: whether it has a bias.
        inputs: width of the input, to build the layer; None to build it later.
    """
    result = Dense(
        units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=initializer(initializer_range),
        bias_initializer="zeros",
        dtype=layer.dtype_policy,
        name=name,
    )
    if inputs is not None:
        result.build((None, None, inputs))
    return result


@keras.saving.register_keras_serializable("bert_tf")
class OutputLayer(Layer):
    """The table of an output layer that is not the token table: `kernel` [V, H], and `bias` [V] or None.

    Args:
        vocabulary_size, hidden_size: V, H.
        use_bias: whether there is a bias.
        initializer_range: standard deviation of the normal that fills the kernel; or the name of another initializer of
            Keras.

    Example:
        OutputLayer(100, 8, True).kernel.shape  # (100, 8)
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_size: int,
        use_bias: bool,
        initializer_range: Initializer = "glorot_uniform",
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        own = initializer(initializer_range, normal=RandomNormal)
        with keras.name_scope(self.name, caller=self):
            self.kernel = self.add_weight(
                shape=(vocabulary_size, hidden_size), initializer=own, autocast=False, name="kernel"
            )
            self.bias = None
            if use_bias:
                self.bias = self.add_weight(shape=(vocabulary_size,), initializer="zeros", autocast=False, name="bias")
        self.built = True


def gather_positions(sequence: Tensor, positions: Tensor) -> Tensor:
    """Returns the vectors at some positions of each sequence.

    It gathers from the flattened batch, as `gather_indexes` in google-research/bert, which copies whole vectors;
    `take_along_axis` would look up one number at a time.

    Args:
        sequence: [B, S, H].
        positions: int [B, P], each in 0..S-1.

    Returns:
        [B, P, H].
    """
    batch, length, size = ops.shape(sequence)
    offsets = ops.arange(batch, dtype=positions.dtype)[:, None] * length
    flat = ops.reshape(sequence, (batch * length, size))
    return ops.take(flat, positions + offsets, axis=0)
