"""The settings of a study. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from tfrecords.shards.config import CorpusConfig


@dataclasses.dataclass(frozen=True)
class StudyRow:
    """One line of the table.

    Attributes:
        shards: which of the study's shards it reads.
        pretrain: what differs from the study's `pretrain`.
        finetune: what differs from each of the study's tasks.
        seeds: how often it is pretrained and then fine-tuned; None for the study's number.
    """

    shards: str
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    seeds: Annotated[int | None, Range(at_least=1)] = None


@dataclasses.dataclass(frozen=True)
class StudyConfig:
    """A study, as in configs/ablations/*.yaml.

    Attributes:
        shards: name -> what `ShardsConfig` takes, but for the settings of `corpus`.
        pretrain: what `PretrainConfig` takes, common to all rows.
        finetune: name of a task -> what `FinetuneConfig` takes; `init_from` is the row's run.
        rows: name -> what `StudyRow` takes.
        corpus: how the text is read, held-out text too, once for all shards.
        seeds: how often each row is pretrained, with train.seed 0, 1, ...
    """

    shards: dict
    rows: dict
    corpus: CorpusConfig = CorpusConfig()
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    seeds: Annotated[int, Range(at_least=1)] = 1
