"""Learning-rate schedules as the papers' code has them."""

import inspect
import math
from typing import Any

import keras
from keras import ops

from bert_tf.errors import ConfigError

VARIANTS = ("replace", "multiply", "after", "hold")
DECAYS = ("polynomial", "cosine", "rsqrt")


@keras.saving.register_keras_serializable("bert_tf")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial, cosine or inverse square root decay to `end_learning_rate`.

    By default the first update is step 0 and has a learning rate of 0 during warm-up, as in
    google-research/bert `optimization.py`.

    With w warm-up steps, "rsqrt" is learning_rate * min(s / w, 1) * sqrt(w / max(s, w)). The published forms, all of
    which have their peak at s = w, are

    - Vaswani et al. 2017, equation 3: d^-0.5 * min(s^-0.5, s * w^-1.5), updates counted from 1:
      `learning_rate=(d * w) ** -0.5, first_step=1`;
    - tensor2tensor's `transformer_base_v3`: 2 * d^-0.5 * min(s / w, 1) / sqrt(max(s, w)), updates counted from 0:
      `learning_rate=2 * (d * w) ** -0.5`;
    - T5's 1 / sqrt(max(s, 10^4)), without a linear warm-up: `learning_rate=0.01, warmup_steps=10_000, variant="hold"`.

    Args:
        learning_rate: the peak.
        total_steps: updates of the whole run; the decay ends here.
        warmup_steps: updates of the warm-up; 0 for none.
        end_learning_rate: where the decay ends.
        power: 1.0 is linear; 0.0 keeps the peak (a constant rate after the warm-up).
        variant: how warm-up and decay combine.
            "replace": warm-up replaces the decay, which counts from step 0 (BERT): the rate jumps
            down to the decayed value where the warm-up ends.
            "multiply": the decayed rate is multiplied by the warm-up factor (ELECTRA).
            "after": the decay starts from the peak where the warm-up ends (XLNet, fairseq, nanoGPT).
            "hold": the rate is the peak from the first update, and the decay starts where the warm-up ends (T5).
            With "rsqrt" the first three are the same.
        decay: "polynomial"; or "cosine": half a period, (1 + cos(pi * progress)) / 2 (Loshchilov and Hutter 2017,
            equation 5, without restarts); or "rsqrt", which does not depend on `total_steps` and approaches
            `end_learning_rate` without an end. Only the first has a power.
        first_step: the number of the first update: 0 or 1.

    Raises:
        ConfigError: an unknown variant or decay; a warm-up longer than the run; "rsqrt" without warm-up steps.

    Example:
        WarmupDecay(1e-4, total_steps=100, warmup_steps=10)(5)  # half of 1e-4
    """

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        warmup_steps: int = 0,
        end_learning_rate: float = 0.0,
        power: float = 1.0,
        variant: str = "replace",
        decay: str = "polynomial",
        first_step: int = 0,
    ) -> None:
        if variant not in VARIANTS:
            raise ConfigError(f"schedule variant '{variant}' is none of {', '.join(VARIANTS)}")
        if decay not in DECAYS:
            raise ConfigError(f"decay '{decay}' is none of {', '.join(DECAYS)}")
        if warmup_steps > total_steps:
            raise ConfigError(f"warm-up of {warmup_steps} steps is longer than the run of {total_steps}")
        if decay == "rsqrt" and warmup_steps < 1:
            raise ConfigError("the decay 'rsqrt' begins where the warm-up ends; set warmup_steps to 1 or more")
        self.learning_rate, self.total_steps, self.warmup_steps = learning_rate, total_steps, warmup_steps
        self.end_learning_rate, self.power, self.variant = end_learning_rate, power, variant
        self.decay, self.first_step = decay, first_step

    def __call__(self, step: Any) -> Any:
        """The learning rate of the update that follows `step` finished ones; float32 scalar."""
        step = ops.cast(step, "float32") + self.first_step
        warm = step / max(self.warmup_steps, 1)
        decayed = (self.learning_rate - self.end_learning_rate) * self._left(step) + self.end_learning_rate
        if self.variant == "hold":
            return decayed
        if self.variant == "multiply":
            return decayed * ops.minimum(warm, 1.0) if self.warmup_steps else decayed
        return ops.where(step < self.warmup_steps, self.learning_rate * warm, decayed)

    def _left(self, step):
        """What the decay leaves of the peak: from 1 to 0."""
        if self.decay == "rsqrt":
            return ops.sqrt(self.warmup_steps / ops.maximum(step, self.warmup_steps))
        offset = self.warmup_steps if self.variant in ("after", "hold") else 0
        progress = ops.clip((step - offset) / max(self.total_steps - offset, 1), 0.0, 1.0)
        if self.decay == "cosine":
            return 0.5 * (1.0 + ops.cos(math.pi * progress))
        return ops.power(1.0 - progress, self.power)

    def get_config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
