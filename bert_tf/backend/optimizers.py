"""AdamW as BERT's authors had it, and with the bias correction that they left out; Adagrad."""

import keras
from keras import ops

from bert_tf.backend.variable_rates import ScaledUpdates

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

# Scale and offset of layer and RMS norms, and every bias, by the last part of a variable's path; google-research/bert
# `optimization.py` names them "LayerNorm", "layer_norm" and "bias".
NOT_DECAYED = ("bias", "gamma", "beta", "scale")


def dense(gradient):
    """A gradient as a tensor; that of looked-up rows is none."""
    return tf.convert_to_tensor(gradient) if keras.backend.backend() == "tensorflow" else gradient


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
        learning_rate=1e-4,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        bias_correction=True,
        global_clipnorm=1.0,
        name="adamw",
        **kwargs,
    ):
        super().__init__(
            learning_rate, weight_decay, beta_1, beta_2, epsilon, global_clipnorm=global_clipnorm, name=name, **kwargs
        )
        self.bias_correction = bias_correction
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def add_variable(self, shape, initializer="zeros", dtype=None, **kwargs):
        # Moments have float32: 0.999 is 1 in bfloat16, and the second one would never change.
        dtype = "float32" if dtype in ("bfloat16", "float16") else dtype
        return super().add_variable(shape, initializer, dtype, **kwargs)

    def _apply_weight_decay(self, variables):
        """Left to `update_step`, which has the learning rate: Keras computes the schedule again for each variable."""

    def update_step(self, gradient, variable, learning_rate):
        gradient, variable, learning_rate = self.scaled(gradient, variable, learning_rate)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * ops.cast(learning_rate, variable.dtype))
        in_one = keras.backend.backend() == "tensorflow" and variable.dtype in ("float32", "float64")
        (self._adam_in_one_op if in_one else self._adam)(gradient, variable, learning_rate)

    def _adam_in_one_op(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        variable = variable.value if isinstance(variable, keras.Variable) else variable
        step = tf.cast(self.iterations + 1, variable.dtype)
        correct = self.bias_correction
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            # The kernel's step size is lr * sqrt(1 - beta_2^t) / (1 - beta_1^t).
            beta1_power=tf.pow(tf.cast(self.beta_1, step.dtype), step) if correct else 0.0,
            beta2_power=tf.pow(tf.cast(self.beta_2, step.dtype), step) if correct else 0.0,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )

    def _adam(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        gradient = ops.cast(dense(gradient), m.dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        size = ops.cast(learning_rate, m.dtype)
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, m.dtype)
            size = size * ops.sqrt(1 - ops.power(self.beta_2, step)) / (1 - ops.power(self.beta_1, step))
        self.assign_sub(variable, ops.cast(size * m / (ops.sqrt(v) + self.epsilon), variable.dtype))

    def get_config(self):
        return {**super().get_config(), "bias_correction": self.bias_correction}


@keras.saving.register_keras_serializable("bert_tf")
class Adagrad(ScaledUpdates, keras.optimizers.Adagrad):
    """Keras's own (Duchi et al. 2011), which also takes the factors of `ScaledUpdates`.

    Example:
        Adagrad(0.2, initial_accumulator_value=1.0, global_clipnorm=10.0)
    """

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(*self.scaled(gradient, variable, learning_rate))
