"""The settings that every kind of training shares, and what is made of them."""

import contextlib

import keras

from bert_tf.backend import AdamW, Lamb, WarmupDecay
from bert_tf.errors import ConfigError
from bert_tf.training.optimizer_config import OptimizerConfig  # noqa: F401


def make_optimizer(config, total_steps):
    """An `AdamW` or `Lamb` on a `WarmupDecay` over `total_steps` updates."""
    warmup = config.warmup_steps
    if warmup is None:
        warmup = int(total_steps * config.warmup_fraction)
    schedule = WarmupDecay(
        config.learning_rate,
        total_steps,
        warmup_steps=min(warmup, total_steps),
        end_learning_rate=config.end_learning_rate,
        power=config.power,
        variant=config.schedule,
    )
    return {"adamw": AdamW, "lamb": Lamb}[config.name](
        schedule,
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm,
    )


PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


@contextlib.contextmanager
def precision(name):
    """Layers made in this block compute in `name`; their variables stay float32.

    bfloat16 wherever there is a choice: float16, for older GPUs, has too small a range and loses an
    update now and then.
    """
    if name not in PRECISIONS:
        raise ConfigError(f"precision '{name}' is none of {', '.join(PRECISIONS)}")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
