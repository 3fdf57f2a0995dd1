"""AdamW as BERT's authors had it, and with the bias correction that they left out."""

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

# Scale and offset of layer and RMS norms, and every bias, by the last part of a variable's path; google-research/bert
# `optimization.py` names them "LayerNorm", "layer_norm" and "bias".
NOT_DECAYED = ("bias", "gamma", "beta", "scale")


@keras.saving.register_keras_serializable("bert_tf")
class AdamW(keras.optimizers.AdamW):
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

    def _apply_weight_decay(self, variables):
        """Left to `update_step`, which has the learning rate: Keras computes the schedule again for each variable."""

    def update_step(self, gradient, variable, learning_rate):
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * keras.ops.cast(learning_rate, variable.dtype))
        fused = keras.backend.backend() == "tensorflow"
        (self._adam_in_one_op if fused else self._adam_in_keras)(gradient, variable, learning_rate)

    def _adam_in_one_op(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        variable = variable.value if isinstance(variable, keras.Variable) else variable
        step = tf.cast(self.iterations.value + 1, tf.float32)
        correct = self.bias_correction
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            # The kernel's step size is lr * sqrt(1 - beta_2^t) / (1 - beta_1^t).
            beta1_power=tf.pow(self.beta_1, step) if correct else 0.0,
            beta2_power=tf.pow(self.beta_2, step) if correct else 0.0,
            lr=tf.cast(learning_rate, tf.float32),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )

    def _adam_in_keras(self, gradient, variable, learning_rate):
        if self.bias_correction:
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * keras.ops.square(gradient))
        self.assign_sub(variable, learning_rate * m / (keras.ops.sqrt(v) + self.epsilon))

    def get_config(self):
        return {**super().get_config(), "bias_correction": self.bias_correction}
