"""Learning-rate schedules as the papers' code has them."""

import math

import keras
from keras import ops

from bert_tf.errors import ConfigError

VARIANTS = ("replace", "multiply", "after")
DECAYS = ("polynomial", "cosine")


class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial or cosine decay to `end_learning_rate`.

    The first update is step 0 and already has a learning rate of 0 during warm-up, as in
    google-research/bert `optimization.py`.

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
        decay: "polynomial"; or "cosine": half a period, (1 + cos(pi * progress)) / 2 (Loshchilov and Hutter 2017,
            equation 5, without restarts), which has no power.

    Example:
        WarmupDecay(1e-4, total_steps=100, warmup_steps=10)(5)  # half of 1e-4
    """

    def __init__(
        self,
        learning_rate,
        total_steps,
        warmup_steps=0,
        end_learning_rate=0.0,
        power=1.0,
        variant="replace",
        decay="polynomial",
    ):
        if variant not in VARIANTS:
            raise ConfigError(f"schedule variant '{variant}' is none of {', '.join(VARIANTS)}")
        if decay not in DECAYS:
            raise ConfigError(f"decay '{decay}' is none of {', '.join(DECAYS)}")
        if warmup_steps > total_steps:
            raise ConfigError(f"warm-up of {warmup_steps} steps is longer than the run of {total_steps}")
        self.learning_rate, self.total_steps, self.warmup_steps = learning_rate, total_steps, warmup_steps
        self.end_learning_rate, self.power, self.variant = end_learning_rate, power, variant
        self.decay = decay

    def __call__(self, step):
        """The learning rate of the update that follows `step` finished ones; float32 scalar."""
        step = ops.cast(step, "float32")
        warm = step / max(self.warmup_steps, 1)
        offset = self.warmup_steps if self.variant == "after" else 0
        progress = ops.clip((step - offset) / max(self.total_steps - offset, 1), 0.0, 1.0)
        span = self.learning_rate - self.end_learning_rate
        if self.decay == "cosine":
            left = 0.5 * (1.0 + ops.cos(math.pi * progress))
        else:
            left = ops.power(1.0 - progress, self.power)
        decayed = span * left + self.end_learning_rate
        if self.variant == "multiply":
            return decayed * ops.minimum(warm, 1.0) if self.warmup_steps else decayed
        return ops.where(step < self.warmup_steps, self.learning_rate * warm, decayed)

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "end_learning_rate": self.end_learning_rate,
            "power": self.power,
            "variant": self.variant,
            "decay": self.decay,
        }
