"""The settings of the optimizer, and the list of optimizers. No TensorFlow is imported, as in all settings."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.registry import Registry


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """AdamW or LAMB with warm-up and decay; the defaults are BERT's, pretraining on 256 sequences a batch.

    Devlin et al. 2019, appendix A.2, and google-research/bert `optimization.py`.

    Attributes:
        name: "adamw", or "lamb": ALBERT's optimizer for batches of thousands (Lan et al. 2019, section 4.1).
        learning_rate: the peak, at the end of the warm-up.
        warmup_steps: updates over which the learning rate rises from 0; None for `warmup_fraction` of the run.
        warmup_fraction: the fraction of the run that is warm-up, where `warmup_steps` is not set.
        schedule: how warm-up and decay meet. "replace": the decay is counted from the first update, and the warm-up
            replaces it while it lasts (BERT). "multiply": both factors apply at once (ELECTRA). "after": the decay begins
            where the warm-up ends (RoBERTa, XLNet).
        decay: the shape of the decay: "polynomial", or "cosine", half a period of it (GPT).
        power: of the polynomial decay; 1 is linear, 0 is constant.
        end_learning_rate: what the learning rate falls to.
        weight_decay: decoupled, times the learning rate; not on biases and layer norms.
        beta_1, beta_2: decay rates of the moments of the gradient.
        epsilon: added to the root of the second moment.
        bias_correction: whether the moments are corrected for starting at zero. BERT's code does not; fine-tuning on
            small data sets needs it (Mosbach et al. 2021).
        clip_norm: the gradient of all weights together is scaled down to this norm, after the sum over replicas; None
            for no clipping.
    """

    CHOSEN_BY: ClassVar[str] = "name"

    name: str = "adamw"
    learning_rate: Annotated[float, Range(at_least=0)] = 1e-4
    warmup_steps: Annotated[int | None, Range(at_least=0)] = None
    warmup_fraction: Annotated[float, Range(at_least=0, at_most=1)] = 0.01
    schedule: Literal["replace", "multiply", "after"] = "replace"
    decay: Literal["polynomial", "cosine"] = "polynomial"
    power: Annotated[float, Range(at_least=0)] = 1.0
    end_learning_rate: Annotated[float, Range(at_least=0)] = 0.0
    weight_decay: Annotated[float, Range(at_least=0)] = 0.01
    beta_1: Annotated[float, Range(at_least=0, below=1)] = 0.9
    beta_2: Annotated[float, Range(at_least=0, below=1)] = 0.999
    epsilon: Annotated[float, Range(above=0)] = 1e-6
    bias_correction: bool = False
    clip_norm: Annotated[float | None, Range(above=0)] = 1.0

    @classmethod
    def choices(cls):
        """Name -> settings of every optimizer, for `bert_tf.config.build`."""
        return {name: record.config for name, record in OPTIMIZERS.items()}


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The record of an optimizer.

    Attributes:
        name: the value of `optimizer.name`.
        optimizer: its class, or "module:attribute". It is called with the schedule of the learning rate, with
            `global_clipnorm`, and with `arguments`.
        config: its settings: `OptimizerConfig`, or a subclass whose default `name` is this name.
        arguments: the names of the settings that the class takes by the same names.
    """

    name: str
    optimizer: type | str
    config: type = OptimizerConfig
    arguments: tuple[str, ...] = ("weight_decay", "beta_1", "beta_2", "epsilon", "bias_correction")


OPTIMIZERS = Registry(
    "optimizer",
    "optimizer.name",
    [Optimizer("adamw", "bert_tf.backend:AdamW"), Optimizer("lamb", "bert_tf.backend:Lamb")],
)
