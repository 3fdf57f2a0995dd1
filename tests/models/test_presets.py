import keras
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models import PRESETS, BertEncoder, preset
from bert_tf.objectives import MaskedLM


def count(config, pooler=True, pair_task="nsp"):
    """(encoder, with heads): of the real variables, which this scope leaves without memory."""
    with keras.StatelessScope(initialize_variables=False):
        model = MaskedLM(BertEncoder(config, pooler=pooler), pair_task=pair_task)
        return model.backbone.count_params(), model.count_params()


#: The names that Turc et al. released 20 of their 24 models by; the other 4 are called tiny, mini, small and medium.
MINIATURES = {name for name in PRESETS if name.startswith("bert_uncased_L-")}


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("bert_") and name not in MINIATURES])
def test_parameter_counts(name):
    expected = PRESETS[name]
    assert count(expected.config) == (expected.encoder_parameters, expected.pretraining_parameters)


@pytest.mark.parametrize(
    "name, encoder, pretraining, masked_lm_only",
    [
        ("bert_base", 109_482_240, 110_106_428, 109_514_298),
        ("bert_base_cased", 108_310_272, 108_932_934, 108_340_804),
        ("bert_large", 335_141_888, 336_226_108, None),
        ("bert_large_cased", 333_579_264, 334_661_958, None),
    ],
)
def test_published_counts(name, encoder, pretraining, masked_lm_only):
    assert (PRESETS[name].encoder_parameters, PRESETS[name].pretraining_parameters) == (encoder, pretraining)
    if masked_lm_only:
        assert count(PRESETS[name].config, pooler=False, pair_task=None)[1] == masked_lm_only


def test_the_readme_of_the_miniatures_rounds_the_pretraining_counts():
    readme = {"bert_tiny": 4.4, "bert_mini": 11.3, "bert_small": 29.1, "bert_medium": 41.7}
    assert {name: round(PRESETS[name].pretraining_parameters / 1e6, 1) for name in readme} == readme


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


def test_overrides():
    config = preset("bert_mini", vocabulary_size=8000, dropout=0.0)
    assert (config.vocabulary_size, config.hidden_size, config.dropout) == (8000, 256, 0.0)
    assert preset("bert_mini").vocabulary_size == 30_522


def test_errors():
    with pytest.raises(ConfigError, match="no preset 'bert_bas'; did you mean 'bert_base'"):
        preset("bert_bas")
    with pytest.raises(ConfigError, match="unknown key 'bert_base.vocab_size'; did you mean"):
        preset("bert_base", vocab_size=8)
    with pytest.raises(ConfigError, match="'bert_base.dropout' must be float, got 'none'"):
        preset("bert_base", dropout="none")
