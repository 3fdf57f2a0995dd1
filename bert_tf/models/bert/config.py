"""Settings, sizes and records of BERT and SpanBERT. No Keras is imported."""

import dataclasses
from typing import ClassVar

from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Positions, Segments, StackConfig, published_sizes


@dataclasses.dataclass(frozen=True)
class BertConfig(StackConfig):
    """The settings of a BERT.

    Args:
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        activation: Google trained with the tanh approximation of GELU; Hugging Face configurations that say
            "gelu" mean "gelu_erf".
        others: as `StackConfig`.

    Example:
        BertConfig(vocabulary_size=8000, hidden_size=256, num_layers=4, num_heads=4, intermediate_size=1024)
    """

    has_position_table: ClassVar[bool] = True

    max_positions: Positions = 512
    num_segments: Segments = 2


def _checkpoints():
    from bert_tf.models.bert import checkpoints

    return checkpoints


BERT = Family(
    name="bert",
    config=BertConfig,
    model="bert_tf.models.bert.model:BertEncoder",
    sizes={
        # The releases of google-research/bert. Uncased unless the name says otherwise. The README's 4.4, 11.3, 29.1 and
        # 41.7 million of the miniatures are pretraining parameters. The whole-word-masking releases have the shapes of
        # bert_large and bert_large_cased.
        "bert_tiny": Preset(BertConfig(30_522, **published_sizes(2, 128)), 4_385_920, 4_433_468),
        "bert_mini": Preset(BertConfig(30_522, **published_sizes(4, 256)), 11_170_560, 11_267_900),
        "bert_small": Preset(BertConfig(30_522, **published_sizes(4, 512)), 28_763_648, 29_058_876),
        "bert_medium": Preset(BertConfig(30_522, **published_sizes(8, 512)), 41_373_184, 41_668_412),
        # The other 20 of the 24 miniatures of Turc et al. 2019, by the names of their release.
        "bert_uncased_L-2_H-256_A-4": Preset(BertConfig(30_522, **published_sizes(2, 256)), 9_591_040, 9_688_380),
        "bert_uncased_L-2_H-512_A-8": Preset(BertConfig(30_522, **published_sizes(2, 512)), 22_458_880, 22_754_108),
        "bert_uncased_L-2_H-768_A-12": Preset(BertConfig(30_522, **published_sizes(2, 768)), 38_603_520, 39_227_708),
        "bert_uncased_L-4_H-128_A-2": Preset(BertConfig(30_522, **published_sizes(4, 128)), 4_782_464, 4_830_012),
        "bert_uncased_L-4_H-768_A-12": Preset(BertConfig(30_522, **published_sizes(4, 768)), 52_779_264, 53_403_452),
        "bert_uncased_L-6_H-128_A-2": Preset(BertConfig(30_522, **published_sizes(6, 128)), 5_179_008, 5_226_556),
        "bert_uncased_L-6_H-256_A-4": Preset(BertConfig(30_522, **published_sizes(6, 256)), 12_750_080, 12_847_420),
        "bert_uncased_L-6_H-512_A-8": Preset(BertConfig(30_522, **published_sizes(6, 512)), 35_068_416, 35_363_644),
        "bert_uncased_L-6_H-768_A-12": Preset(BertConfig(30_522, **published_sizes(6, 768)), 66_955_008, 67_579_196),
        "bert_uncased_L-8_H-128_A-2": Preset(BertConfig(30_522, **published_sizes(8, 128)), 5_575_552, 5_623_100),
        "bert_uncased_L-8_H-256_A-4": Preset(BertConfig(30_522, **published_sizes(8, 256)), 14_329_600, 14_426_940),
        "bert_uncased_L-8_H-768_A-12": Preset(BertConfig(30_522, **published_sizes(8, 768)), 81_130_752, 81_754_940),
        "bert_uncased_L-10_H-128_A-2": Preset(BertConfig(30_522, **published_sizes(10, 128)), 5_972_096, 6_019_644),
        "bert_uncased_L-10_H-256_A-4": Preset(BertConfig(30_522, **published_sizes(10, 256)), 15_909_120, 16_006_460),
        "bert_uncased_L-10_H-512_A-8": Preset(BertConfig(30_522, **published_sizes(10, 512)), 47_677_952, 47_973_180),
        "bert_uncased_L-10_H-768_A-12": Preset(BertConfig(30_522, **published_sizes(10, 768)), 95_306_496, 95_930_684),
        "bert_uncased_L-12_H-128_A-2": Preset(BertConfig(30_522, **published_sizes(12, 128)), 6_368_640, 6_416_188),
        "bert_uncased_L-12_H-256_A-4": Preset(BertConfig(30_522, **published_sizes(12, 256)), 17_488_640, 17_585_980),
        "bert_uncased_L-12_H-512_A-8": Preset(BertConfig(30_522, **published_sizes(12, 512)), 53_982_720, 54_277_948),
        "bert_uncased_L-12_H-768_A-12": Preset(
            BertConfig(30_522, **published_sizes(12, 768)), 109_482_240, 110_106_428
        ),
        "bert_base": Preset(BertConfig(30_522, **published_sizes(12, 768)), 109_482_240, 110_106_428),
        "bert_large": Preset(BertConfig(30_522, **published_sizes(24, 1024)), 335_141_888, 336_226_108),
        "bert_base_cased": Preset(BertConfig(28_996, **published_sizes(12, 768)), 108_310_272, 108_932_934),
        "bert_large_cased": Preset(BertConfig(28_996, **published_sizes(24, 1024)), 333_579_264, 334_661_958),
        "bert_base_multilingual_cased": Preset(
            BertConfig(119_547, **published_sizes(12, 768)), 177_853_440, 178_566_653
        ),
        "bert_base_chinese": Preset(BertConfig(21_128, **published_sizes(12, 768)), 102_267_648, 102_882_442),
    },
    checkpoints=lambda: (
        {"hf": _checkpoints().HF, "keras_hub": _checkpoints().HUB}
        | dict.fromkeys(("tf1", "garden"), _checkpoints().TF1)
    ),
    pair_task="nsp",
)


@dataclasses.dataclass(frozen=True)
class SpanBertConfig(BertConfig):
    """The settings of a SpanBERT: those of a BERT, and another default activation.

    Example:
        SpanBertConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    activation: Activation = "gelu_erf"


SPANBERT = Family(
    name="spanbert",
    config=SpanBertConfig,
    model="bert_tf.models.bert.model:SpanBertEncoder",
    sizes={
        "spanbert_base": Preset(SpanBertConfig(28_996, **published_sizes(12, 768)), 108_310_272, 110_300_480),
        "spanbert_large": Preset(SpanBertConfig(28_996, **published_sizes(24, 1024)), 333_579_264, 336_998_976),
    },
    checkpoints=lambda: {"hf": _checkpoints().HF},
)
