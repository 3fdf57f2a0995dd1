"""RoBERTa's settings, sizes and record. No Keras is imported."""

import dataclasses
from typing import ClassVar

from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Positions, Positive, Segments, StackConfig, TokenId, published_sizes
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class RobertaConfig(StackConfig):
    """The settings of a RoBERTa.

    Args:
        max_positions: the longest sequence. The table has padding_id + 1 more rows: published
            configurations say 514.
        num_segments: 1 as in Hugging Face's checkpoints: every token gets the same row; 0 as in fairseq's,
            which have none. Segment ids are not read.
        padding_id: the tokenizer's padding id; positions are counted from the row after it.
        activation: of the feed-forward network. The masked LM head's is the exact GELU whatever this is, as
            Hugging Face's.
        others: as `StackConfig`.

    Example:
        RobertaConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    has_position_table: ClassVar[bool] = True

    activation: Activation = "gelu_erf"
    layer_norm_epsilon: Positive = 1e-5
    max_positions: Positions = 512
    num_segments: Segments = 1
    padding_id: TokenId = 1


def _checkpoints():
    from bert_tf.models.roberta import checkpoints

    return {"hf": checkpoints.HF, "keras_hub": checkpoints.HUB}


ROBERTA = Family(
    name="roberta",
    config=RobertaConfig,
    model="bert_tf.models.roberta.model:RobertaEncoder",
    sizes={
        # fairseq's releases as Hugging Face's checkpoints hold them (with a pooler), and the distilled one.
        "roberta_base": Preset(RobertaConfig(50_265, **published_sizes(12, 768)), 124_645_632, 124_697_433),
        "roberta_large": Preset(RobertaConfig(50_265, **published_sizes(24, 1024)), 355_359_744, 355_412_057),
        "distilroberta_base": Preset(RobertaConfig(50_265, **published_sizes(6, 768)), 82_118_400, 82_170_201),
    },
    checkpoints=_checkpoints,
    # fairseq's RobertaClassificationHead, whose `pooler_dropout` is 0.0 unless it is given; Hugging Face's rate is 0.1.
    heads=lambda config: {"classification": TaskHead("first", activation="tanh", input_dropout=True, dropout=0.0)},
)
