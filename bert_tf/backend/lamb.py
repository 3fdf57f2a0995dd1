"""LAMB as ALBERT's authors had it; one of four variants in use."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import active
from bert_tf.backend.optimizers import AdamW


@keras.saving.register_keras_serializable("bert_tf")
class Lamb(AdamW):
    """Adam whose step for each variable is scaled to the size of the variable (You et al. 2019).

    `LAMBOptimizer` in google-research/albert `lamb_optimizer.py`:

        u = m / (sqrt(v) + epsilon) + weight_decay * w
        w = w - learning_rate * |w| / |u| * u

    without bias correction, with the decay inside the ratio, and both the decay and the ratio left
    out for biases and layer norms, which take plain Adam's steps. (Model Garden's corrects the
    bias, NVIDIA's scales every variable, Keras's decays outside the ratio.)

    Args:
        learning_rate: float or schedule.
        weight_decay: added to the update; not applied to biases and layer norms.
        bias_correction: True divides m and v by what they lack at the start, as the paper does.
        kwargs: as `AdamW`.

    Example:
        Lamb(1.76e-3, weight_decay=0.01)
    """

    def __init__(
        self,
        learning_rate: Any = 1.76e-3,
        weight_decay: float | None = 0.01,
        bias_correction: bool = False,
        name: str = "lamb",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay, bias_correction=bias_correction, name=name, **kwargs)

    def _decay(self, variable, learning_rate):
        """Nothing before the update: the decay is a part of it."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient, variable, learning_rate = self.scaled(gradient, variable, learning_rate)
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        gradient = ops.cast(active.dense(gradient), m.dtype)
        new_m = self.beta_1 * m + (1 - self.beta_1) * gradient
        new_v = self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient)
        self.assign(m, new_m)
        self.assign(v, new_v)
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, m.dtype)
            new_m = new_m / (1 - ops.power(self.beta_1, step))
            new_v = new_v / (1 - ops.power(self.beta_2, step))
        update = new_m / (ops.sqrt(new_v) + self.epsilon)
        if self._use_weight_decay(variable):  # "layer adaptation" has the same exceptions
            weights = ops.cast(ops.convert_to_tensor(variable), m.dtype)
            update = update + self.weight_decay * weights
            size, update_size = ops.norm(weights), ops.norm(update)
            usable = ops.logical_and(size > 0, update_size > 0)
            update = update * ops.where(usable, size / ops.where(usable, update_size, 1.0), 1.0)
        self.assign_sub(variable, ops.cast(ops.cast(learning_rate, m.dtype) * update, variable.dtype))
