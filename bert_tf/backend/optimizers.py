"""AdamW as BERT's authors had it, and with the bias correction that they left out; Adagrad."""

from typing import Any

import keras

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
