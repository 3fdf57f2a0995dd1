"""AdamW as BERT's authors had it, and with the bias correction that they left out; LAMB as ALBERT's; Adagrad."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import active
from bert_tf.backend.variable_rates import ScaledUpdates

# Scale and offset of layer and RMS norms, and every bias, by the last part of a variable's path; google-research/bert
# `optimization.py` names them "LayerNorm", "layer_norm" and "bias".
NOT_DECAYED = ("bias", "gamma", "beta", "scale")


@keras.saving.register_keras_serializable("bert_tf")
class AdamW(ScaledUpdates, keras.optimizers.AdamW):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    Args:
        learning_rate: float or schedule.
        weight_decay: multiplied by the learning rate; not applied to biases and layer norms.
        beta_1, beta_2, epsilon: Adam's; epsilon is added to the square root of the
            uncorrected second moment (the "epsilon hat" of Kingma & Ba 2015, section 2).
        bias_correction: False is google-research/bert's `AdamWeightDecayOptimizer`: the first
            updates are larger, and fine-tuning on small data is less stable
            (Mosbach et al. 2021, section 4).
        global_clipnorm: gradients are scaled to at most this norm, all together; None for no clip.
        kwargs: `rate_factors` and `gradient_factors` of `ScaledUpdates`, and what `keras.optimizers.AdamW` takes.

    Example:
        AdamW(WarmupDecay(1e-4, warmup_steps=10, total_steps=100), weight_decay=0.01)
    """

    def __init__(
        self,
        learning_rate: Any = 1e-4,
        weight_decay: float | None = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        global_clipnorm: float | None = 1.0,
        name: str = "adamw",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, weight_decay, beta_1, beta_2, epsilon, global_clipnorm=global_clipnorm, name=name, **kwargs
        )
        self.bias_correction = bias_correction
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None, **kwargs: Any) -> Any:
        # Moments have float32: 0.999 is 1 in bfloat16, and the second one would never change.
        dtype = "float32" if dtype in ("bfloat16", "float16") else dtype
        return super().add_variable(shape, initializer, dtype, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient, variable, learning_rate = self.scaled(gradient, variable, learning_rate)
        active.apply_adam(self, gradient, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "bias_correction": self.bias_correction}


@keras.saving.register_keras_serializable("bert_tf")
class Adagrad(ScaledUpdates, keras.optimizers.Adagrad):
    """Keras's own (Duchi et al. 2011), which also takes the factors of `ScaledUpdates`.

    Example:
        Adagrad(0.2, initial_accumulator_value=1.0, global_clipnorm=10.0)
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(*self.scaled(gradient, variable, learning_rate))


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
