"""The settings of training that pretraining and fine-tuning share. No TensorFlow is imported, as in all settings."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class BatchConfig:
    """Batches and devices.

    Attributes:
        batch_size: sequences (fine-tuning: examples) of an update, over all replicas and micro-batches together.
        accumulation_steps: how many micro-batches a batch is cut into; their gradients are summed before the update.
            Saves memory, changes no number.
        remat: gradient checkpointing: the backward pass computes each transformer layer again instead of keeping what
            is inside it. Saves memory and costs time; the gradients are the same. LSTMs have no such layers.
        precision: what the model computes in; the weights are float32 in any case. "auto" is bfloat16 on TPUs, on GPUs
            that have it, and on CPUs where the products of this model are faster in it, else float32; config.yaml of
            the run records the choice, and a resumed run keeps it. See `bert_tf.training.precision`.
        strategy: "one" device; "mirrored" on all GPUs of this machine (else all its CPU devices); "multi_worker": the
            cluster that TF_CONFIG describes; "tpu". "auto" takes a TPU, else a cluster, else all GPUs, else the CPU.
        xla: whether forward and backward pass are compiled by XLA. None for what pays: all of it on GPUs, small parts
            on CPUs. On TPUs everything always is.
        seed: of the initial weights, the order of the data, masks and dropout.

    Raises:
        ConfigError: a batch that cannot be cut into equal micro-batches.
    """

    #: The settings that `TrainableModel.compile` takes.
    COMPILED: ClassVar[tuple[str, ...]] = ("accumulation_steps", "remat", "xla", "seed")

    batch_size: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 32
    accumulation_steps: Annotated[int, Range(at_least=1)] = 1
    remat: bool = False
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    strategy: Literal["auto", "one", "mirrored", "multi_worker", "tpu"] = "auto"
    xla: bool | None = None
    seed: Annotated[int, Range(at_least=0, below=2**32)] = 0

    def __post_init__(self):
        if self.accumulation_steps > 0 and self.batch_size % self.accumulation_steps:
            raise ConfigError(
                f"batch_size={self.batch_size} cannot be cut into accumulation_steps={self.accumulation_steps} equal parts"
            )

    @property
    def compiled(self):
        """The arguments of `TrainableModel.compile` beside the optimizer."""
        return {name: getattr(self, name) for name in self.COMPILED}
