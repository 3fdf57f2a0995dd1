"""Bidirectional LSTMs (Graves and Schmidhuber 2005) of Keras: stacks of them, and what both directions computed last."""

import keras
from keras import ops

from bert_tf.backend import Layer


@keras.saving.register_keras_serializable("bert_tf")
class BiLstm(keras.layers.Bidirectional):
    """Keras's, whose mask ends here: layers above take the padding mask as an argument.

    Its arguments, call arguments and result are those of `keras.layers.Bidirectional`.

    Example:
        layer = BiLstm(keras.layers.LSTM(4, return_sequences=True))
        layer(np.ones((2, 3, 8), "float32"), mask=np.ones((2, 3), bool))  # [2, 3, 8]
    """

    def compute_mask(self, inputs, mask=None):
        return None


def bilstms(layers, units, width):
    """A stack of built bidirectional LSTMs in float32, each of which reads both directions of the one below it.

    Args:
        layers: how many.
        units: of each direction.
        width: of the vectors that the first one reads.

    Returns:
        A list of `BiLstm`, with the names "bilstm_0", "bilstm_1", ...; each returns [B, S, 2 units].

    Example:
        first, second = bilstms(layers=2, units=4, width=8)
        second(first(np.ones((2, 3, 8), "float32")))  # [2, 3, 8]
    """
    stack = []
    for index in range(layers):
        # Without cuDNN's kernel, which XLA cannot compile into a training step.
        one = keras.layers.LSTM(units, return_sequences=True, use_cudnn=False, dtype="float32", name="lstm")
        both = BiLstm(one, dtype="float32", name=f"bilstm_{index}")
        both.build((None, None, width))
        stack.append(both)
        width = 2 * units
    return stack


@keras.saving.register_keras_serializable("bert_tf")
class EndsOfDirections(Layer):
    """The last state of each direction: of the first half of H at the last real token, of the second half at the first.

    Call arguments:
        x: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens, which come first; None for all.

    Returns:
        [B, H].

    Example:
        EndsOfDirections()(np.ones((2, 3, 4), "float32"))  # [2, 4]
    """

    def call(self, x, padding_mask=None):
        units = x.shape[-1] // 2
        if padding_mask is None:
            forward = x[:, -1, :units]
        else:
            last = ops.maximum(ops.sum(ops.cast(padding_mask, "int32"), 1) - 1, 0)
            forward = ops.take_along_axis(x[:, :, :units], last[:, None, None], axis=1)[:, 0]
        return ops.concatenate([forward, x[:, 0, units:]], -1)

    def compute_output_spec(self, x, padding_mask=None):
        return keras.KerasTensor((x.shape[0], x.shape[2]), dtype=self.compute_dtype)
