"""The published sizes, each with the number of parameters that it must have."""

import dataclasses

from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.bert import BertConfig
from bert_tf.models.electra import ElectraConfig


@dataclasses.dataclass(frozen=True)
class Preset:
    """One published model.

    Args:
        config: its configuration.
        encoder_parameters: embeddings, layers and pooler.
        pretraining_parameters: with all that it was pretrained with: heads, and for ELECTRA's
            discriminators the generator, of 1/4 (base: 1/3) of the width.
    """

    config: object
    encoder_parameters: int
    pretraining_parameters: int


def _bert(num_layers, hidden_size, vocabulary_size):
    # All of google-research/bert: heads of 64, a feed-forward network four times as wide.
    return BertConfig(
        vocabulary_size=vocabulary_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
    )


def _electra(num_layers, embedding_size, hidden_size):
    # All of google-research/electra, generators too: uncased, heads of 64.
    return ElectraConfig(
        vocabulary_size=30_522,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
    )


#: The releases of google-research/bert. Uncased unless the name says otherwise. The README's 4.4,
#: 11.3, 29.1 and 41.7 million of the miniatures are pretraining parameters. The whole-word-masking
#: releases have the shapes of bert_large and bert_large_cased.
PRESETS = {
    "bert_tiny": Preset(_bert(2, 128, 30_522), 4_385_920, 4_433_468),
    "bert_mini": Preset(_bert(4, 256, 30_522), 11_170_560, 11_267_900),
    "bert_small": Preset(_bert(4, 512, 30_522), 28_763_648, 29_058_876),
    "bert_medium": Preset(_bert(8, 512, 30_522), 41_373_184, 41_668_412),
    "bert_base": Preset(_bert(12, 768, 30_522), 109_482_240, 110_106_428),
    "bert_large": Preset(_bert(24, 1024, 30_522), 335_141_888, 336_226_108),
    "bert_base_cased": Preset(_bert(12, 768, 28_996), 108_310_272, 108_932_934),
    "bert_large_cased": Preset(_bert(24, 1024, 28_996), 333_579_264, 334_661_958),
    "bert_base_multilingual_cased": Preset(_bert(12, 768, 119_547), 177_853_440, 178_566_653),
    "bert_base_chinese": Preset(_bert(12, 768, 21_128), 102_267_648, 102_882_442),
    "electra_small": Preset(_electra(12, 128, 256), 13_483_008, 14_196_219),
    "electra_base": Preset(_electra(12, 768, 768), 108_891_648, 119_386_427),
    "electra_large": Preset(_electra(24, 1024, 1024), 334_092_288, 354_655_291),
    "electra_small_generator": Preset(_electra(12, 128, 256), 13_483_008, 13_546_682),
    "electra_base_generator": Preset(_electra(12, 768, 256), 33_511_168, 33_740_602),
    "electra_large_generator": Preset(_electra(24, 1024, 256), 50_999_552, 51_295_290),
}


def preset(name, **overrides):
    """The configuration of a published size.

    Args:
        name: a key of `PRESETS`, e.g. "bert_base".
        overrides: fields of the configuration to change, e.g. `vocabulary_size=8000`.

    Raises:
        ConfigError: no such preset or field (the message has the nearest one), or a value of the
            wrong type.
    """
    if name not in PRESETS:
        raise ConfigError(f"no preset '{name}'{nearest(name, PRESETS)}")
    config = PRESETS[name].config
    return build(type(config), {**to_dict(config), **overrides}, where=name)
