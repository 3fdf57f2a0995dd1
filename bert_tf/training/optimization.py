"""Makes the optimizer of pretraining and fine-tuning from its settings."""

from bert_tf.backend import AdamW, Lamb, WarmupDecay
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
        decay=config.decay,
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
