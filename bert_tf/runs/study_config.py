"""The settings of a study. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from tfrecords.config import CorpusConfig


@dataclasses.dataclass(frozen=True)
class StudyRow:
    """One line of the table.

    Attributes:
        shards: which of the study's shards it reads; None in a row that pretrains nothing.
        init_from: of a row that is not pretrained by the study: the run directory or published checkpoint (also
            hf://owner/name) that it fine-tunes, such as a run of 'bert-tf vectors'; "" for none.
        pretrain: what differs from the study's `pretrain`. null leaves out a setting of the study that the row's model,
            objective or optimizer does not have.
        finetune: what differs from each of the study's tasks.
        seeds: how often it is pretrained and then fine-tuned; None for the study's number.
    """

    shards: str | None = None
    init_from: str = ""
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    seeds: Annotated[int | None, Range(at_least=1)] = None


@dataclasses.dataclass(frozen=True)
class HalvingConfig:
    """Successive halving: which rows of a study go on, and for how long.

    Attributes:
        metric: the column of the table by which rows are compared, such as eval_masked_lm_loss or, of a task,
            parts_of_speech.accuracy.
        rounds: in the last one a row has its train.steps, in the round before `keep` times as many, and so on.
        keep: the part of the rows that goes on after a round.
    """

    metric: str
    rounds: Annotated[int, Range(at_least=1, at_most=20)] = 3
    keep: Annotated[float, Range(above=0, below=1)] = 0.5


@dataclasses.dataclass(frozen=True)
class StudyConfig:
    """A study, as in configs/ablations/*.yaml.

    A study without `shards` pretrains nothing: its rows fine-tune one model, `init_from`, with different settings.

    Attributes:
        shards: name -> what `ShardsConfig` takes, but for the settings of `corpus`.
        pretrain: what `PretrainConfig` takes, common to all rows.
        finetune: name of a task -> what `FinetuneConfig` takes; `init_from` is the row's run, or that of the study. A
            list of values for a setting, of `optimizer.learning_rate` for example, is a grid, of which the best on the
            dev file counts.
        rows: name -> what `StudyRow` takes.
        corpus: how the text is read, held-out text too, alike for all shards.
        seeds: how often each row is pretrained, with train.seed 0, 1, ...
        init_from: of a study that pretrains nothing: the run directory or published checkpoint (also hf://owner/name)
            that every row fine-tunes.
        halving: trains all rows for a short time and the better ones longer; None trains each row once.
    """

    rows: dict
    shards: dict = dataclasses.field(default_factory=dict)
    corpus: CorpusConfig = CorpusConfig()
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    seeds: Annotated[int, Range(at_least=1)] = 1
    init_from: str = ""
    halving: HalvingConfig | None = None

    @property
    def pretrains(self):
        """Whether its rows are pretrained."""
        return bool(self.shards)
