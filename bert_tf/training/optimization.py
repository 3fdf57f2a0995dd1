"""Makes the optimizer of pretraining and fine-tuning from its settings."""

from bert_tf.backend import WarmupDecay
from bert_tf.registry import resolve
from bert_tf.training.optimizer_config import OPTIMIZERS

#: Our names of settings -> Keras's of arguments, where they differ.
_KERAS_NAMES = {"clip_norm": "global_clipnorm"}


def make_optimizer(config, total_steps):
    """The optimizer that `config.name` names, on a `WarmupDecay` over `total_steps` updates."""
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
        first_step=config.first_step,
    )
    record = OPTIMIZERS[config.name]
    arguments = {_KERAS_NAMES.get(name, name): getattr(config, name) for name in record.arguments}
    return resolve(record.optimizer)(schedule, **arguments)
