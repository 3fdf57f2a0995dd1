"""ALBERT's settings, sizes and record. No Keras is imported."""

import dataclasses
from typing import ClassVar, Literal

from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Layers, Positions, Rate, Segments, StackConfig, Width


@dataclasses.dataclass(frozen=True)
class AlbertConfig(StackConfig):
    """The settings of an ALBERT.

    Args:
        embedding_size: E, the width of the tables and of the masked LM head.
        num_layers: L, layers as they are computed, whatever they share; each is `inner_groups` transformer
            blocks.
        share: what the layers of a group share: "all", "attention" or "feed_forward" with its normalization,
            or "none".
        num_groups: layer i belongs to group int(i * num_groups / L).
        inner_groups: blocks, with weights of their own, that make up one layer.
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        dropout: on embeddings and on both branches of each layer; version 2 and the xxlarge models were trained without.
        attention_dropout: on attention probabilities; version 2 and the xxlarge models were trained without it.
        others: as `StackConfig`; the activation as `BertConfig`.

    Example:
        AlbertConfig(100, 16, num_layers=4, num_heads=2, intermediate_size=32, embedding_size=8, num_groups=2)
    """

    has_position_table: ClassVar[bool] = True

    embedding_size: Width = dataclasses.field(kw_only=True)
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    share: Literal["all", "attention", "feed_forward", "none"] = "all"
    num_groups: Layers = 1
    inner_groups: Layers = 1
    max_positions: Positions = 512
    num_segments: Segments = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_groups > self.num_layers:
            raise ConfigError(f"num_groups={self.num_groups} is more than num_layers={self.num_layers}")


def _albert(num_layers, hidden_size, num_heads, dropout):
    return AlbertConfig(
        vocabulary_size=30_000,
        embedding_size=128,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=num_heads,
        intermediate_size=4 * hidden_size,
        dropout=dropout,
        attention_dropout=dropout,
    )


def _checkpoints():
    from bert_tf.models.albert import checkpoints

    return {"hf": checkpoints.HF, "tf1": checkpoints.TF1, "keras_hub": checkpoints.HUB}


ALBERT = Family(
    name="albert",
    config=AlbertConfig,
    model="bert_tf.models.albert.model:AlbertEncoder",
    sizes={
        # google-research/albert. Version 2 was trained longer and on more text, without dropout; xxlarge never had any
        # (dropout rates of version 1 as in Hugging Face's configurations).
        "albert_base_v1": Preset(_albert(12, 768, 12, 0.1), 11_683_584, 11_813_810),
        "albert_large_v1": Preset(_albert(24, 1024, 16, 0.1), 17_683_968, 17_847_474),
        "albert_xlarge_v1": Preset(_albert(24, 2048, 16, 0.1), 58_724_864, 59_021_490),
        "albert_xxlarge_v1": Preset(_albert(12, 4096, 64, 0.0), 222_595_584, 223_158_450),
        "albert_base_v2": Preset(_albert(12, 768, 12, 0.0), 11_683_584, 11_813_810),
        "albert_large_v2": Preset(_albert(24, 1024, 16, 0.0), 17_683_968, 17_847_474),
        "albert_xlarge_v2": Preset(_albert(24, 2048, 16, 0.0), 58_724_864, 59_021_490),
        "albert_xxlarge_v2": Preset(_albert(12, 4096, 64, 0.0), 222_595_584, 223_158_450),
    },
    checkpoints=_checkpoints,
    pair_task="sop",
)
