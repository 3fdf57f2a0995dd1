"""BERT's settings, sizes and record. No Keras is imported; the model is in bert.py."""

import dataclasses

from bert_tf.models.encoder_config import (
    EncoderConfig,
    Positions,
    Segments,
    table_shapes,
    transformer_layer_shapes,
)
from bert_tf.models.family import ExpectedShapes, Family, Preset


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The settings of a BERT.

    Args:
        max_positions: the longest sequence.
        num_segments: rows of the segment table.
        activation: Google trained with the tanh approximation of GELU; Hugging Face configurations that say
            "gelu" mean "gelu_erf".
        others: as `EncoderConfig`.

    Example:
        BertConfig(vocabulary_size=8000, hidden_size=256, num_layers=4, num_heads=4, intermediate_size=1024)
    """

    max_positions: Positions = 512
    num_segments: Segments = 2


def google_bert(num_layers, hidden_size, vocabulary_size, config_class=BertConfig):
    """A size as google-research/bert released them: heads of 64, a feed-forward network four times as wide."""
    return config_class(
        vocabulary_size=vocabulary_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
    )


def expected_shapes(config):
    """What the arrays of a published checkpoint with these settings must look like."""
    tables = table_shapes(config, segments=config.num_segments)
    return ExpectedShapes(tables, transformer_layer_shapes(config), config.num_layers)


BERT = Family(
    name="bert",
    config=BertConfig,
    model="bert_tf.models.bert:BertEncoder",
    sizes={
        # The releases of google-research/bert. Uncased unless the name says otherwise. The README's 4.4, 11.3, 29.1 and
        # 41.7 million of the miniatures are pretraining parameters. The whole-word-masking releases have the shapes of
        # bert_large and bert_large_cased.
        "bert_tiny": Preset(google_bert(2, 128, 30_522), 4_385_920, 4_433_468),
        "bert_mini": Preset(google_bert(4, 256, 30_522), 11_170_560, 11_267_900),
        "bert_small": Preset(google_bert(4, 512, 30_522), 28_763_648, 29_058_876),
        "bert_medium": Preset(google_bert(8, 512, 30_522), 41_373_184, 41_668_412),
        "bert_base": Preset(google_bert(12, 768, 30_522), 109_482_240, 110_106_428),
        "bert_large": Preset(google_bert(24, 1024, 30_522), 335_141_888, 336_226_108),
        "bert_base_cased": Preset(google_bert(12, 768, 28_996), 108_310_272, 108_932_934),
        "bert_large_cased": Preset(google_bert(24, 1024, 28_996), 333_579_264, 334_661_958),
        "bert_base_multilingual_cased": Preset(google_bert(12, 768, 119_547), 177_853_440, 178_566_653),
        "bert_base_chinese": Preset(google_bert(12, 768, 21_128), 102_267_648, 102_882_442),
    },
    checkpoints={
        "hf": "bert_tf.models.bert:HF",
        "tf1": "bert_tf.models.bert:TF1",
        "garden": "bert_tf.models.bert:TF1",
    },
    tokenizers=("wordpiece",),
    pair_head="next_sentence",
    expected_shapes=expected_shapes,
)
