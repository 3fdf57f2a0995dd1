"""The settings of the optimizer. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """AdamW or LAMB with warm-up and decay; the defaults are BERT's, pretraining on 256 sequences a batch.

    Devlin et al. 2019, appendix A.2, and google-research/bert `optimization.py`. Fine-tuning sets
    `bias_correction: true`, which BERT's code lacks (Mosbach et al. 2021). `name: lamb` is ALBERT's
    optimizer for batches of thousands (Lan et al. 2019, section 4.1).
    """

    name: Literal["adamw", "lamb"] = "adamw"
    learning_rate: Annotated[float, Range(at_least=0)] = 1e-4
    warmup_steps: Annotated[int | None, Range(at_least=0)] = None  # or a share of the run:
    warmup_fraction: Annotated[float, Range(at_least=0, at_most=1)] = 0.01
    schedule: Literal["replace", "multiply", "after"] = "replace"
    power: Annotated[float, Range(at_least=0)] = 1.0
    end_learning_rate: Annotated[float, Range(at_least=0)] = 0.0
    weight_decay: Annotated[float, Range(at_least=0)] = 0.01
    beta_1: Annotated[float, Range(at_least=0, below=1)] = 0.9
    beta_2: Annotated[float, Range(at_least=0, below=1)] = 0.999
    epsilon: Annotated[float, Range(above=0)] = 1e-6
    bias_correction: bool = False
    clip_norm: Annotated[float | None, Range(above=0)] = 1.0
