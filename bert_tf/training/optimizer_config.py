"""The settings of the optimizer. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range


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

    name: Literal["adamw", "lamb"] = "adamw"
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
