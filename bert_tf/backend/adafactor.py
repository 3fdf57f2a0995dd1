"""Adafactor as Mesh TensorFlow has it, with which T5 was trained. Keras's is another algorithm."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import active
from bert_tf.backend.variable_rates import ScaledUpdates

#: A variable is factored where its second largest dimension has so many entries.
MIN_SIZE_TO_FACTOR = 128


@keras.saving.register_keras_serializable("bert_tf")
class Adafactor(ScaledUpdates, keras.optimizers.Optimizer):
    """Adam without momentum, whose second moments are kept as row and column means (Shazeer and Stern 2018).

    `AdafactorOptimizer` in `mesh_tensorflow/optimize.py`; with t from 1, b = 1 - t^-decay_exponent:

        v = b v + (1 - b) (g^2 + epsilon)       of a large matrix only the means over rows and over columns
        u = g / sqrt(v)                         where v is (row mean)(column mean) / mean
        u = u / max(1, rms(u) / clip_threshold)
        w = w - learning_rate * max(rms(w), scale_epsilon) * u

    Keras's always factors the last two dimensions, however small, keeps a full second moment beside them, and limits
    the learning rate to 1 / sqrt(t).

    Args:
        learning_rate: float or schedule; T5's is 1 / sqrt(max(t, 10,000)).
        decay_exponent: 0.8 in the paper and in T5.
        clip_threshold: the largest root mean square of an update; None for no limit.
        scale_by_parameters: whether the learning rate is relative to the size of a variable.
        epsilon: added to the squared gradient.
        scale_epsilon: the smallest size of a variable.
        kwargs: `rate_factors` and `gradient_factors` of `ScaledUpdates`; those of `keras.optimizers.Optimizer`, such as
            `global_clipnorm`.

    Example:
        Adafactor(1e-2)
    """

    def __init__(
        self,
        learning_rate: Any = 1e-2,
        decay_exponent: float = 0.8,
        clip_threshold: float | None = 1.0,
        scale_by_parameters: bool = True,
        epsilon: float = 1e-30,
        scale_epsilon: float = 1e-3,
        name: str = "adafactor",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.decay_exponent, self.clip_threshold = decay_exponent, clip_threshold
        self.scale_by_parameters = scale_by_parameters
        self.epsilon, self.scale_epsilon = epsilon, scale_epsilon

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._moments = []  # of each variable: [rows, columns], or [moments]
        for variable in variables:
            shape, axes = tuple(variable.shape), _factored_axes(variable.shape)
            shapes = [shape] if axes is None else [shape[:a] + shape[a + 1 :] for a in axes]
            names = ["second_moment"] if axes is None else ["row_means", "column_means"]
            self._moments.append([
                self.add_variable(shape, dtype="float32", name=f"{variable.path.replace('/', '_')}_{name}")
                for shape, name in zip(shapes, names)
            ])  # fmt: skip

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient, variable, learning_rate = self.scaled(gradient, variable, learning_rate)
        gradient = ops.cast(active.dense(gradient), "float32")
        step = ops.cast(self.iterations + 1, "float32")
        kept = 1.0 - ops.power(step, -self.decay_exponent)
        squares = ops.square(gradient) + self.epsilon

        def updated(moment, value):
            self.assign(moment, kept * moment + (1.0 - kept) * value)
            return ops.convert_to_tensor(moment)

        moments, axes = self._moments[self._get_variable_index(variable)], _factored_axes(variable.shape)
        if axes is None:
            update = gradient * ops.rsqrt(updated(moments[0], squares))
        else:
            longest, second = axes
            rows = ops.expand_dims(updated(moments[0], ops.mean(squares, axis=longest)), longest)
            columns = ops.expand_dims(updated(moments[1], ops.mean(squares, axis=second)), second)
            mean = ops.mean(rows, axis=second, keepdims=True)
            update = gradient * ops.rsqrt(rows / mean) * ops.rsqrt(columns)
        if self.clip_threshold is not None:
            update = update / ops.maximum(1.0, _rms(update) / self.clip_threshold)
        rate = ops.cast(learning_rate, "float32")
        if self.scale_by_parameters:
            weights = ops.cast(ops.convert_to_tensor(variable), "float32")
            rate = rate * ops.maximum(_rms(weights), self.scale_epsilon)
        self.assign_sub(variable, ops.cast(rate * update, variable.dtype))

    def get_config(self) -> dict[str, Any]:
        own = ("decay_exponent", "clip_threshold", "scale_by_parameters", "epsilon", "scale_epsilon")
        return super().get_config() | {name: getattr(self, name) for name in own}


def _factored_axes(shape):
    """(the largest axis, the second largest), or None where the variable is not factored."""
    if len(shape) < 2:
        return None
    by_size = sorted(range(len(shape)), key=lambda axis: shape[axis])
    longest, second = by_size[-1], by_size[-2]
    return (longest, second) if shape[second] >= MIN_SIZE_TO_FACTOR else None


def _rms(x):
    return ops.sqrt(ops.mean(ops.square(x)))
