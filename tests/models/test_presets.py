"""The published sizes: what is built has their numbers of parameters, and these are the published ones."""

from dataclasses import replace

import keras
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models import PRESETS, build_backbone, preset
from bert_tf.models.electra.config import generator_config
from bert_tf.models.electra.model import make_generator
from bert_tf.models.families import encoder_alone, family_of
from bert_tf.objectives import CausalLM, MaskedLM, PermutationLM, ReplacedTokenDetection

#: The names that Turc et al. released 20 of their 24 models by; the other 4 are called tiny, mini, small and medium.
MINIATURES = {name for name in PRESETS if name.startswith("bert_uncased_L-")}
#: Name -> parameters of the encoder and of the pretraining model, as their classes in Hugging Face's library have them.
PUBLISHED = {
    "bert_base": (109_482_240, 110_106_428), "bert_base_cased": (108_310_272, 108_932_934),
    "bert_large": (335_141_888, 336_226_108), "bert_large_cased": (333_579_264, 334_661_958),
    "electra_small": (13_483_008, 14_196_219), "electra_small_generator": (13_483_008, 13_546_682),
    "electra_base": (108_891_648, 119_386_427), "electra_base_generator": (33_511_168, 33_740_602),
    "electra_large": (334_092_288, 354_655_291), "electra_large_generator": (50_999_552, 51_295_290),
    "xlnet_base_cased": (116_718_336, 116_750_336), "xlnet_large_cased": (360_268_800, 360_300_800),
    "gpt1": (116_534_784, 116_534_784), "gpt2_small": (124_439_808, 124_439_808), "gpt2_medium": (354_823_168, 354_823_168),
    "gpt2_large": (774_030_080, 774_030_080), "gpt2_xl": (1_557_611_200, 1_557_611_200),
}  # fmt: skip


def pretraining_model(name):
    config = PRESETS[name].config
    family = family_of(config).name
    if family == "electra" and not name.endswith("generator"):
        encoder = build_backbone(config, pooler=False)
        small = generator_config(config, 1 / 3 if name == "electra_base" else 1 / 4)
        return ReplacedTokenDetection(encoder, make_generator(encoder, small))
    if family in ("transformer", "elmo", "lstm_lm"):
        return build_backbone(config, pooler=False)
    if family in ("xlnet", "gpt1", "gpt2"):
        return (PermutationLM if family == "xlnet" else CausalLM)(build_backbone(config, pooler=False))
    pair_task = {"bert": "nsp", "albert": "sop"}.get(family)
    # Without next sentence prediction there was nothing to train SpanBERT's pooler with.
    encoder = build_backbone(config, pooler=pair_task is not None)
    return MaskedLM(encoder, pair_task=pair_task, span_boundary=family == "spanbert")


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in MINIATURES])
def test_parameter_counts(name):
    """Of the real variables, which this scope leaves without memory."""
    config, family = PRESETS[name].config, family_of(PRESETS[name].config).name
    if family == "t5":
        assert count_of_t5(config) == PRESETS[name].encoder_parameters == PRESETS[name].pretraining_parameters
        return
    with keras.StatelessScope(initialize_variables=False):
        model = pretraining_model(name)
        assert model.count_params() == PRESETS[name].pretraining_parameters
        # These have a pooler, which was not pretrained.
        with_pooler = family in ("roberta", "spanbert")
        encoder = build_backbone(config, pooler=True) if with_pooler else getattr(model, "backbone", model)
        assert encoder.count_params() == PRESETS[name].encoder_parameters


def count_of_t5(config):
    """From models of one layer or two on either side: up to 36 take long to be built."""

    def count(encoder, decoder):
        return build_backbone(replace(config, num_layers=encoder, num_decoder_layers=decoder)).count_params()

    with keras.StatelessScope(initialize_variables=False):
        least = count(1, 1)
        more = (config.num_layers - 1) * (count(2, 1) - least)
        return least + more + ((config.num_decoder_layers or config.num_layers) - 1) * (count(1, 2) - least)


@pytest.mark.parametrize(("name", "make", "count"), [
    ("bert_base", MaskedLM, 109_514_298), ("bert_base_cased", MaskedLM, 108_340_804),
    ("electra_small", ReplacedTokenDetection, 13_549_057), ("electra_base", ReplacedTokenDetection, 109_483_009),
    ("electra_large", ReplacedTokenDetection, 335_142_913), ("t5_small", lambda encoder: encoder, 35_330_816),
    ("t5_1_1_xxl", lambda encoder: encoder, 4_762_310_656),  # the text encoder of several image generators,
])  # fmt: skip
def test_published_counts_of_parts(name, make, count):
    """Without a pooler, without a generator, without a decoder."""
    with keras.StatelessScope(initialize_variables=False):
        assert make(build_backbone(encoder_alone(PRESETS[name].config), pooler=False)).count_params() == count


def test_counts_that_are_published():
    found = {name: (PRESETS[name].encoder_parameters, PRESETS[name].pretraining_parameters) for name in PUBLISHED}
    assert found == PUBLISHED


def test_counts_that_are_published_in_millions():
    """By the README of the miniatures, by allennlp.org (without the mix of 4 weights), and by Vaswani et al. 2017."""
    readme = {"bert_tiny": 4.4, "bert_mini": 11.3, "bert_small": 29.1, "bert_medium": 41.7}
    assert {name: round(PRESETS[name].pretraining_parameters / 1e6, 1) for name in readme} == readme
    elmo = {"elmo_small": 13.6, "elmo_medium": 28.0, "elmo_original": 93.6}
    assert {name: round((PRESETS[name].encoder_parameters - 4) / 1e6, 1) for name in elmo} == elmo
    # Table 3 rounds, and does not give its vocabulary.
    for name, millions in (("transformer_base", 65), ("transformer_big", 213), ("transformer_base_v3", 65)):
        assert PRESETS[name].encoder_parameters == pytest.approx(1e6 * millions, rel=0.04)


def test_the_24_miniatures():
    """Turc et al. 2019: 2 to 12 layers by 4 widths, heads of 64. The counts are those of the closed formula."""
    named = {(2, 128): "bert_tiny", (4, 256): "bert_mini", (4, 512): "bert_small", (8, 512): "bert_medium"}
    for layers in (2, 4, 6, 8, 10, 12):
        for h in (128, 256, 512, 768):
            known = PRESETS[named.get((layers, h)) or f"bert_uncased_L-{layers}_H-{h}_A-{h // 64}"]
            config, v, i = known.config, 30_522, 4 * h
            assert (config.num_layers, config.hidden_size, config.num_heads) == (layers, h, h // 64)
            encoder = (v + 512 + 2 + 2) * h + layers * (4 * (h * h + h) + 2 * h * i + i + h + 4 * h) + h * h + h
            assert known.encoder_parameters == encoder
            assert known.pretraining_parameters == encoder + h * h + 3 * h + v + 2 * h + 2
    assert len(MINIATURES) == 20


def test_transformers():
    """Vaswani et al. 2017, section 3: no biases in the attention, biases in the feed-forward network."""
    for name, h, final_norms in (("base", 512, 0), ("big", 1024, 0), ("base_v3", 512, 2)):
        attention, network, norm = 4 * h**2, 2 * h * 4 * h + 4 * h + h, 2 * h  # scale and offset
        encoder, decoder = attention + network + 2 * norm, 2 * attention + network + 3 * norm
        expected = 37_000 * h + 6 * (encoder + decoder) + final_norms * norm
        assert PRESETS[f"transformer_{name}"].encoder_parameters == expected


def test_overrides():
    config = preset("bert_mini", vocabulary_size=8000, dropout=0.0)
    assert (config.vocabulary_size, config.hidden_size, config.dropout) == (8000, 256, 0.0)
    assert preset("bert_mini").vocabulary_size == 30_522 and preset("spanbert_base").activation == "gelu_erf"


def test_errors():
    with pytest.raises(ConfigError, match="no preset 'bert_bas'; did you mean 'bert_base'"):
        preset("bert_bas")
    with pytest.raises(ConfigError, match="unknown key 'bert_base.vocab_size'; did you mean"):
        preset("bert_base", vocab_size=8)
