"""LSTMs: those of language models, with projection, clips and packed rows, and Keras's own in both directions."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Layer, initializer
from bert_tf.layers.block_settings import Initializer
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class LSTM(Layer):
    """One LSTM over a row, in one direction: TensorFlow 1's `LSTMCell`, which bilm-tf and adversarial_text use.

    With x the input, h the output of the step before and c its cell:

        i, j, f, o = split([x, h] W + b)
        c' = clip(sigmoid(f + forget_bias) c + sigmoid(i) tanh(j), cell_clip)
        h' = clip(P (sigmoid(o) tanh(c')), projection_clip)

    where P is the projection (Sak et al. 2014), or nothing. Each text starts from zeros, or from `state`. Keras's own
    LSTM has the order i, f, j, o, no projection and no clips.

    With `unroll` the row is read in segments for truncated backpropagation (Williams and Peng 1990): each segment takes
    over the state of the one before, and no gradient flows through that state. The outputs are the same.

    Args:
        units: D, the width of the cell.
        projection: the width P of the output; None for D, without a projection.
        cell_clip, projection_clip: the largest absolute value of the cell and of a projected output; None for none.
        forget_bias: is added to the forget gate, on top of its trained bias, which starts from 0.
        backwards: whether the row is read from its last token to its first.
        initializer: of the kernels, the name of an initializer of Keras.
        unroll: steps of a segment, counted from where the reading begins; None for the whole row.

    Call arguments:
        x: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens; padding leaves the state as it is, and its output is 0. None
            for no padding.
        sequence_ids: int [B, S]; where they change the state is set to zeros. None for one text a row.
        state: the pair (c [B, D], h [B, P]) before the first token; None for zeros.

    Returns:
        A pair: float [B, S, P]; the state (c, h) after the last token, float [B, D] and [B, P].

    Example:
        y, (c, h) = LSTM(8, projection=4)(np.ones((2, 5, 3), "float32"))
        y.shape, c.shape, h.shape  # [2, 5, 4], [2, 8], [2, 4]

    Source: tensorflow/python/ops/rnn_cell_impl.py `LSTMCell`; allenai/bilm-tf `training.py`.
    """

    def __init__(
        self,
        units: int,
        projection: int | None = None,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        forget_bias: float = 1.0,
        backwards: bool = False,
        initializer: Initializer = "glorot_uniform",
        unroll: int | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.width = units, projection or units
        self.backwards, self.initializer, self.unroll = backwards, initializer, unroll
        self.cell = _Cell(units, projection, cell_clip, projection_clip, forget_bias, initializer,
                          dtype=self.dtype_policy, name="cell")  # fmt: skip
        self.steps = keras.layers.RNN(
            self.cell,
            return_sequences=True,
            return_state=True,
            go_backwards=backwards,
            dtype=self.dtype_policy,
            name="steps",
        )

    def build(self, x_shape: Shape) -> None:
        add = {"initializer": initializer(self.initializer), "trainable": True}
        self.input_kernel = self.add_weight(shape=(x_shape[-1], 4 * self.units), name="input_kernel", **add)
        self.bias = self.add_weight(shape=(4 * self.units,), initializer="zeros", name="bias")
        self.steps.build((*x_shape[:-1], 4 * self.units + (2 if self.unroll else 1)))

    def call(
        self, x: Tensor, padding_mask: Tensor = None, sequence_ids: Tensor = None, state: Tensor = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        # The product with the inputs of all steps at once; only that with the last output waits for it.
        gates = ops.add(ops.matmul(x, self.input_kernel), self.bias)
        marks = [self._same_text(x, sequence_ids)] + ([self._same_segment(x)] if self.unroll else [])
        gates = ops.concatenate([gates, *(ops.cast(mark, gates.dtype) for mark in marks)], axis=-1)
        if state is None:
            batch = ops.shape(x)[0]
            state = [ops.zeros((batch, width), dtype=gates.dtype) for width in (self.units, self.width)]
        c, h = state
        mask = None if padding_mask is None else ops.cast(padding_mask, "bool")
        y, h, c = self.steps(gates, initial_state=[h, c], mask=mask)
        y = ops.flip(y, axis=1) if self.backwards else y
        return y if mask is None else ops.where(mask[..., None], y, 0), (c, h)

    def _same_text(self, x, sequence_ids):
        """1 where the step before, in the direction of reading, is one of the same text, else 0: [B, S, 1].

        The first step keeps the state that is given.
        """
        if sequence_ids is None:
            return ops.ones_like(x[..., :1])
        first = ops.ones_like(sequence_ids[:, :1], dtype="bool")
        same = ops.equal(sequence_ids[:, 1:], sequence_ids[:, :-1])
        return ops.concatenate([same, first] if self.backwards else [first, same], axis=1)[..., None]

    def _same_segment(self, x):
        """0 where a segment begins, else 1: [B, S, 1]."""
        steps = ops.arange(ops.shape(x)[1], dtype="int32")
        inside = steps % self.unroll > 0
        inside = ops.flip(inside, axis=0) if self.backwards else inside
        return ops.broadcast_to(inside[None, :, None], ops.shape(x[..., :1]))

    def compute_output_spec(self, x: Tensor, **options: Options) -> Any:
        batch, length, _ = x.shape
        shapes = ((batch, length, self.width), (batch, self.units), (batch, self.width))
        y, c, h = (keras.KerasTensor(shape, dtype=self.compute_dtype) for shape in shapes)
        return y, (c, h)


class _Cell(Layer):
    """One step of `LSTM`, from the gates without the part of the last output, and 0 where a text or a segment begins."""

    def __init__(self, units, projection, cell_clip, projection_clip, forget_bias, initializer, **kwargs):
        super().__init__(**kwargs)
        self.units, self.projection, self.forget_bias = units, projection, forget_bias
        self.cell_clip, self.projection_clip, self.initializer = cell_clip, projection_clip, initializer
        self.output_size = projection or units
        # The output first: under JAX Keras repeats the first state where a step is masked.
        self.state_size = [self.output_size, units]

    def build(self, gates_shape):
        add = {"initializer": initializer(self.initializer), "trainable": True}
        self.recurrent_kernel = self.add_weight(
            shape=(self.output_size, 4 * self.units), name="recurrent_kernel", **add
        )
        self.projection_kernel = None
        if self.projection:
            self.projection_kernel = self.add_weight(
                shape=(self.units, self.projection), name="projection_kernel", **add
            )

    def call(self, inputs, states):
        size = 4 * self.units
        gates, same_text, same_segment = inputs[:, :size], inputs[:, size : size + 1], inputs[:, size + 1 :]
        h, c = (state * same_text for state in states)
        if same_segment.shape[-1]:
            c, h = (ops.where(same_segment > 0, state, ops.stop_gradient(state)) for state in (c, h))
        i, j, f, o = ops.split(gates + ops.matmul(h, self.recurrent_kernel), 4, axis=-1)
        c = ops.sigmoid(f + self.forget_bias) * c + ops.sigmoid(i) * ops.tanh(j)
        c = _clipped(c, self.cell_clip)
        h = ops.sigmoid(o) * ops.tanh(c)
        if self.projection_kernel is not None:
            h = _clipped(ops.matmul(h, self.projection_kernel), self.projection_clip)
        return h, [h, c]


def _clipped(x, limit):
    return x if limit is None else ops.clip(x, -limit, limit)


@keras.saving.register_keras_serializable("bert_tf")
class BiLstm(keras.layers.Bidirectional):
    """Keras's, whose mask ends here: layers above take the padding mask as an argument.

    Its arguments, call arguments and result are those of `keras.layers.Bidirectional`.

    Example:
        layer = BiLstm(keras.layers.LSTM(4, return_sequences=True))
        layer(np.ones((2, 3, 8), "float32"), mask=np.ones((2, 3), bool))  # [2, 3, 8]
    """

    def compute_mask(self, inputs: Any, mask: Tensor = None) -> None:
        return None


def bilstms(layers: int, units: int, width: int) -> list[keras.Layer]:
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

    def call(self, x: Tensor, padding_mask: Tensor = None) -> Tensor:
        units = x.shape[-1] // 2
        if padding_mask is None:
            forward = x[:, -1, :units]
        else:
            last = ops.maximum(ops.sum(ops.cast(padding_mask, "int32"), 1) - 1, 0)
            forward = ops.take_along_axis(x[:, :, :units], last[:, None, None], axis=1)[:, 0]
        return ops.concatenate([forward, x[:, 0, units:]], -1)
