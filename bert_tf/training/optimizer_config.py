"""The settings of the optimizer, and the list of optimizers. No TensorFlow is imported, as in all settings."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.registry import Registry

Rate = Annotated[float, Range(at_least=0)]


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """The schedule of the learning rate, which every optimizer has. `name` chooses the class with the other settings.

    Attributes:
        name: "adamw"; "adagrad": ELMo's; "lamb": ALBERT's optimizer for batches of thousands (Lan et al. 2019, section
            4.1);
            "adafactor": T5's, which keeps two vectors where the others keep two matrices.
        learning_rate: the peak, at the end of the warm-up. Adafactor's is relative to the size of each variable.
        warmup_steps: updates over which the learning rate rises from 0, at most those of the run; None for
            `warmup_fraction` of the run.
        warmup_fraction: the fraction of the run that is warm-up, where `warmup_steps` is not set.
        schedule: how warm-up and decay meet. "replace": the decay is counted from the first update, and the warm-up
            replaces it while it lasts (BERT). "multiply": both factors apply at once (ELECTRA). "after": the decay
            begins where the warm-up ends (RoBERTa, XLNet). "hold": the same, with the peak instead of a warm-up (T5).
        decay: the shape of the decay: "polynomial"; "cosine", half a period of it (GPT); "rsqrt", with the inverse
            square root of the updates, sqrt(warmup_steps / step) (the Transformer, T5).
        power: of the polynomial decay; 1 is linear, 0 is constant.
        end_learning_rate: what the learning rate falls to.
        first_step: the number of the first update in these formulas: 0, or 1 as in the paper of the Transformer.

    Raises:
        ConfigError: "rsqrt" without a warm-up.
    """

    CHOSEN_BY: ClassVar[str] = "name"

    name: str = "adamw"
    learning_rate: Rate = 1e-4
    warmup_steps: Annotated[int | None, Range(at_least=0)] = None
    warmup_fraction: Annotated[float, Range(at_least=0, at_most=1)] = 0.01
    schedule: Literal["replace", "multiply", "after", "hold"] = "replace"
    decay: Literal["polynomial", "cosine", "rsqrt"] = "polynomial"
    power: Rate = 1.0
    end_learning_rate: Rate = 0.0
    first_step: Annotated[int, Range(at_least=0, at_most=1)] = 0

    def __post_init__(self):
        if self.decay == "rsqrt" and self.warmup_steps == 0:
            raise ConfigError("decay 'rsqrt' begins where the warm-up ends; set warmup_steps to 1 or more")

    @classmethod
    def choices(cls):
        """Name -> settings of every optimizer, for `bert_tf.config.build`."""
        return {name: record.config for name, record in OPTIMIZERS.items()}


@dataclasses.dataclass(frozen=True)
class AdamConfig(OptimizerConfig):
    """AdamW or LAMB with warm-up and decay; the defaults are BERT's, pretraining on 256 sequences a batch.

    Devlin et al. 2019, appendix A.2, and google-research/bert `optimization.py`.

    Attributes:
        weight_decay: decoupled, times the learning rate; not on biases and layer norms.
        beta_1: decay rate of the mean of the gradient.
        beta_2: decay rate of the mean of the squared gradient.
        epsilon: added to the root of the second moment.
        bias_correction: whether the moments are corrected for starting at zero. BERT's code does not; fine-tuning on
            small data sets needs it (Mosbach et al. 2021).
        clip_norm: the gradient of all weights together is scaled down to this norm, after the sum over replicas; None
            for no clipping.
    """

    weight_decay: Annotated[float, Range(at_least=0)] = 0.01
    beta_1: Annotated[float, Range(at_least=0, below=1)] = 0.9
    beta_2: Annotated[float, Range(at_least=0, below=1)] = 0.999
    epsilon: Annotated[float, Range(above=0)] = 1e-6
    bias_correction: bool = False
    clip_norm: Annotated[float | None, Range(above=0)] = 1.0


@dataclasses.dataclass(frozen=True)
class AdafactorConfig(OptimizerConfig):
    """Adafactor as Mesh TensorFlow has it; the defaults are those of T5's pretraining.

    Raffel et al. 2020, section 3.1.2; Shazeer and Stern 2018. There is no `clip_norm`: an update does not depend on the
    size of the gradients, and `clip_threshold` limits the update itself.

    Attributes:
        decay_exponent: the decay rate of the second moments is 1 - step^-decay_exponent.
        clip_threshold: the largest root mean square of an update of a variable, before the learning rate; None for no
            limit.
        scale_by_parameters: whether the learning rate is multiplied by the root mean square of the variable.
    """

    name: str = "adafactor"
    learning_rate: Rate = 1e-2
    warmup_steps: Annotated[int | None, Range(at_least=0)] = 10_000
    schedule: Literal["replace", "multiply", "after", "hold"] = "hold"
    decay: Literal["polynomial", "cosine", "rsqrt"] = "rsqrt"
    decay_exponent: Annotated[float, Range(above=0)] = 0.8
    clip_threshold: Annotated[float | None, Range(above=0)] = 1.0
    scale_by_parameters: bool = True


@dataclasses.dataclass(frozen=True)
class AdagradConfig(OptimizerConfig):
    """Adagrad (Duchi et al. 2011), with which ELMo was trained; the rate does not decay.

    Attributes:
        initial_accumulator_value: what the sums of squared gradients start from; ELMo's is 1 for 20 times the loss, so
            1 / 400.
        clip_norm: as of `AdamConfig`; ELMo's is 10.
    """

    name: str = "adagrad"
    learning_rate: Rate = 0.2
    warmup_steps: Annotated[int | None, Range(at_least=0)] = 0
    power: Rate = 0.0
    initial_accumulator_value: Annotated[float, Range(at_least=0)] = 1.0
    clip_norm: Annotated[float | None, Range(above=0)] = 10.0


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The record of an optimizer.

    Attributes:
        name: the value of `optimizer.name`.
        optimizer: its class, or "module:Class". It is called with the schedule of the learning rate and with `arguments`.
        config: its settings: a subclass of `OptimizerConfig`.
        arguments: the names of the settings that the class takes by the same names; it takes `clip_norm` as
            `global_clipnorm`, as all optimizers of Keras.
    """

    name: str
    optimizer: type | str
    config: type = AdamConfig
    arguments: tuple[str, ...] = ("weight_decay", "beta_1", "beta_2", "epsilon", "bias_correction", "clip_norm")


OPTIMIZERS = Registry(
    "optimizer",
    "optimizer.name",
    [
        Optimizer("adamw", "bert_tf.backend:AdamW"),
        Optimizer("lamb", "bert_tf.backend:Lamb"),
        Optimizer(
            "adafactor",
            "bert_tf.backend:Adafactor",
            AdafactorConfig,
            ("decay_exponent", "clip_threshold", "scale_by_parameters"),
        ),
        Optimizer("adagrad", "bert_tf.backend:Adagrad", AdagradConfig, ("initial_accumulator_value", "clip_norm")),
    ],
)
