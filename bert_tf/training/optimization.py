"""Makes the optimizer of pretraining and fine-tuning from its settings."""

from absl import logging
from keras import ops

from bert_tf.backend import WarmupDecay
from bert_tf.registry import resolve
from bert_tf.training.optimizer_config import OPTIMIZERS


def make_optimizer(config, total_steps):
    """The optimizer that `config.name` names, on the `make_schedule` of `total_steps` updates.

    A warning says that the warm-up is longer than the run, and shortened to it.
    """
    if (config.warmup_steps or 0) > total_steps and config.schedule != "hold":  # held at the peak, it is no warm-up
        logging.warning(
            "optimizer.warmup_steps=%d is more than the %d updates of the run: the warm-up is shortened to %d, and the rate "
            "comes to its peak of %g only at the end; set optimizer.warmup_steps to fewer, such as %d",
            config.warmup_steps, total_steps, total_steps, config.learning_rate, max(1, total_steps // 10),
        )  # fmt: skip
    record = OPTIMIZERS[config.name]
    arguments = {name.replace("clip_norm", "global_clipnorm"): getattr(config, name) for name in record.arguments}
    return resolve(record.optimizer)(make_schedule(config, total_steps), **arguments)


def make_schedule(config, total_steps):
    """The `WarmupDecay` over `total_steps` updates that the settings of an optimizer describe."""
    warmup = config.warmup_steps
    if warmup is None:
        warmup = int(total_steps * config.warmup_fraction)
    return WarmupDecay(
        config.learning_rate,
        total_steps,
        warmup_steps=min(warmup, total_steps),
        end_learning_rate=config.end_learning_rate,
        power=config.power,
        variant=config.schedule,
        decay=config.decay,
        first_step=config.first_step,
    )


def sampled(schedule, total_steps, count=100):
    """[update, rate] pairs of a schedule: its first and last update, and about `count` between them."""
    every = max(1, total_steps // count)
    steps = sorted({*range(0, total_steps, every), total_steps - 1})
    return [[step, float(ops.convert_to_numpy(schedule(step)))] for step in steps]
