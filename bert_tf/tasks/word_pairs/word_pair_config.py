"""The settings of the task word_pair. No TensorFlow is imported."""

import dataclasses
from typing import Literal

from bert_tf.tasks.config import DataSetConfig
from bert_tf.tasks.sections import LabelLossConfig, WordPairHeadConfig


@dataclasses.dataclass(frozen=True)
class WordPairConfig(DataSetConfig):
    """The settings of the task word_pair: those of `HeadedTaskConfig` and these.

    Attributes:
        loss: the training loss.
        pooling: how the tokens of a marked word become a vector, and what is classified. "mean": their mean; both words
            beside the vector of the whole text, as SuperGLUE's baseline for WiC. "attention": a weighted sum of
            projections, whose weights are learned; the two words alone, as SuperGLUE's baseline for WSC.

    Example:
        WordPairConfig(pooling="attention")
    """

    kind: str | None = "word_pair"
    head: WordPairHeadConfig = WordPairHeadConfig()
    loss: LabelLossConfig = LabelLossConfig()
    pooling: Literal["mean", "attention"] = "mean"
