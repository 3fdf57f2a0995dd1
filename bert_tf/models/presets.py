"""The published sizes, each with the number of parameters that it must have. No Keras is imported."""

import dataclasses

from bert_tf.config import build, nearest
from bert_tf.errors import ConfigError
from bert_tf.models.configs import (
    AlbertConfig,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    RobertaConfig,
    SpanBertConfig,
    XLNetConfig,
)
from bert_tf.parsing import brief


@dataclasses.dataclass(frozen=True)
class Preset:
    """One published model.

    Args:
        config: its configuration.
        encoder_parameters: embeddings, layers and pooler; XLNet without the summary layer, which
            was not pretrained.
        pretraining_parameters: with the heads it was pretrained with and, for ELECTRA's
            discriminators, the generator of 1/4 (base: 1/3) of the width; without the pooler
            where it was not pretrained (SpanBERT).
    """

    config: object
    encoder_parameters: int
    pretraining_parameters: int


def _bert(num_layers, hidden_size, vocabulary_size, config_class=BertConfig):
    # All of google-research/bert: heads of 64, a feed-forward network four times as wide.
    return config_class(
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


def _roberta(num_layers, hidden_size):
    return RobertaConfig(
        vocabulary_size=50_265,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
    )


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


def _distilbert(num_layers, vocabulary_size):
    return DistilBertConfig(
        vocabulary_size=vocabulary_size,
        hidden_size=768,
        num_layers=num_layers,
        num_heads=12,
        intermediate_size=3072,
    )


def _modernbert(num_layers, hidden_size, intermediate_size):
    return ModernBertConfig(
        vocabulary_size=50_368,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=hidden_size // 64,
        intermediate_size=intermediate_size,
    )


def _xlnet(num_layers, hidden_size):
    return XLNetConfig(
        vocabulary_size=32_000,
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
    # fairseq's releases as Hugging Face's checkpoints hold them (with a pooler), and the distilled one.
    "roberta_base": Preset(_roberta(12, 768), 124_645_632, 124_697_433),
    "roberta_large": Preset(_roberta(24, 1024), 355_359_744, 355_412_057),
    "distilroberta_base": Preset(_roberta(6, 768), 82_118_400, 82_170_201),
    # google-research/albert. Version 2 was trained longer and on more text, without dropout; xxlarge
    # never had any (dropout rates of version 1 as in Hugging Face's configurations).
    "albert_base_v1": Preset(_albert(12, 768, 12, 0.1), 11_683_584, 11_813_810),
    "albert_large_v1": Preset(_albert(24, 1024, 16, 0.1), 17_683_968, 17_847_474),
    "albert_xlarge_v1": Preset(_albert(24, 2048, 16, 0.1), 58_724_864, 59_021_490),
    "albert_xxlarge_v1": Preset(_albert(12, 4096, 64, 0.0), 222_595_584, 223_158_450),
    "albert_base_v2": Preset(_albert(12, 768, 12, 0.0), 11_683_584, 11_813_810),
    "albert_large_v2": Preset(_albert(24, 1024, 16, 0.0), 17_683_968, 17_847_474),
    "albert_xlarge_v2": Preset(_albert(24, 2048, 16, 0.0), 58_724_864, 59_021_490),
    "albert_xxlarge_v2": Preset(_albert(12, 4096, 64, 0.0), 222_595_584, 223_158_450),
    # Hugging Face's own releases.
    "distilbert_base": Preset(_distilbert(6, 30_522), 66_362_880, 66_985_530),
    "distilbert_base_cased": Preset(_distilbert(6, 28_996), 65_190_912, 65_812_036),
    "distilbert_base_multilingual_cased": Preset(_distilbert(6, 119_547), 134_734_080, 135_445_755),
    # Answer.AI's and LightOn's releases.
    "modernbert_base": Preset(_modernbert(22, 768, 1152), 149_014_272, 149_655_232),
    "modernbert_large": Preset(_modernbert(28, 1024, 2624), 394_781_696, 395_881_664),
    "electra_small": Preset(_electra(12, 128, 256), 13_483_008, 14_196_219),
    "electra_base": Preset(_electra(12, 768, 768), 108_891_648, 119_386_427),
    "electra_large": Preset(_electra(24, 1024, 1024), 334_092_288, 354_655_291),
    "electra_small_generator": Preset(_electra(12, 128, 256), 13_483_008, 13_546_682),
    "electra_base_generator": Preset(_electra(12, 768, 256), 33_511_168, 33_740_602),
    "electra_large_generator": Preset(_electra(24, 1024, 256), 50_999_552, 51_295_290),
    "spanbert_base": Preset(_bert(12, 768, 28_996, SpanBertConfig), 108_310_272, 110_300_480),
    "spanbert_large": Preset(_bert(24, 1024, 28_996, SpanBertConfig), 333_579_264, 336_998_976),
    # zihangdai/xlnet.
    "xlnet_base_cased": Preset(_xlnet(12, 768), 116_718_336, 116_750_336),
    "xlnet_large_cased": Preset(_xlnet(24, 1024), 360_268_800, 360_300_800),
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
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"no preset {brief(name)}{nearest(str(name)[:100], PRESETS)}")
    config = PRESETS[name].config
    return build(type(config), overrides, where=name, base=config)
