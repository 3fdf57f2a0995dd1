import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models import PRESETS, preset
from bert_tf.models.electra import ElectraConfig, ElectraEncoder, make_generator
from bert_tf.models.electra_config import generator_config
from bert_tf.models.families import build_config, build_encoder, describe
from bert_tf.objectives import MaskedLM, ReplacedTokenDetection

SMALL = ElectraConfig(
    vocabulary_size=50,
    embedding_size=10,
    hidden_size=24,
    num_layers=2,
    num_heads=3,
    intermediate_size=40,
    max_positions=16,
    initializer_range=0.3,
)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return ElectraEncoder(SMALL, dtype="float32")


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).integers(5, 50, shape).astype("int32")


@pytest.mark.parametrize(
    "name, generator_size, encoder, with_head, joint",
    [
        ("electra_small", 1 / 4, 13_483_008, 13_549_057, 14_196_219),
        ("electra_base", 1 / 3, 108_891_648, 109_483_009, 119_386_427),
        ("electra_large", 1 / 4, 334_092_288, 335_142_913, 354_655_291),
    ],
)
def test_parameters_of_discriminators(name, generator_size, encoder, with_head, joint):
    config = preset(name)
    with keras.StatelessScope(initialize_variables=False):
        discriminator = ElectraEncoder(config)
        assert discriminator.count_params() == PRESETS[name].encoder_parameters == encoder
        assert ReplacedTokenDetection(discriminator).count_params() == with_head
        generator = make_generator(discriminator, generator_config(config, generator_size))
        model = ReplacedTokenDetection(discriminator, generator)
        assert model.count_params() == PRESETS[name].pretraining_parameters == joint


@pytest.mark.parametrize(
    "name, encoder, masked_lm",
    [
        ("electra_small_generator", 13_483_008, 13_546_682),
        ("electra_base_generator", 33_511_168, 33_740_602),
        ("electra_large_generator", 50_999_552, 51_295_290),
    ],
)
def test_parameters_of_the_released_generators(name, encoder, masked_lm):
    with keras.StatelessScope(initialize_variables=False):
        model = MaskedLM(ElectraEncoder(preset(name)))
        assert model.backbone.count_params() == PRESETS[name].encoder_parameters == encoder
        assert model.count_params() == PRESETS[name].pretraining_parameters == masked_lm


def test_the_generators_of_base_and_large_were_released():
    for name, size in (("electra_base", 0.33333), ("electra_large", 0.25)):
        assert generator_config(preset(name), size) == preset(f"{name}_generator")
    # Of a quarter of the width, with one head; the small one that was released is as wide as its discriminator.
    small = generator_config(preset("electra_small"))
    assert (small.hidden_size, small.num_heads, small.intermediate_size, small.embedding_size) == (64, 1, 256, 128)


def test_a_configuration_and_back():
    config = build_config({"preset": "electra_small", "num_layers": 2}, vocabulary_size=60)
    assert describe(config)["family"] == "electra" and describe(config)["embedding_size"] == 128
    assert build_config(describe(config)) == config
    assert isinstance(build_encoder(config, pooler=False), ElectraEncoder)


def test_the_projection_is_there_where_the_widths_differ(encoder):
    paths = {v.path for v in encoder.weights}
    assert {"embedding_projection/kernel", "embedding_projection/bias"} < paths
    same = ElectraEncoder(ElectraConfig(50, 24, 1, 2, 40, embedding_size=24))
    assert not [v.path for v in same.weights if "projection" in v.path]
    assert encoder.embedding_table.shape == (50, 10)


def test_initial_values_are_those_of_the_original():
    config = ElectraConfig(50, 300, 1, 2, 400, embedding_size=100)
    model = ReplacedTokenDetection(ElectraEncoder(config))
    kernels = {v.path: np.asarray(v) for v in model.weights if v.path.endswith("kernel")}
    for path, fan in (("embedding_projection/kernel", 400), ("discriminator_head/output/kernel", 301)):
        limit = np.sqrt(6 / fan)
        assert 0.9 * limit < np.abs(kernels.pop(path)).max() < limit
    for path, kernel in kernels.items():
        assert np.abs(kernel).max() < 0.0401 and 0.015 < kernel.std() < 0.021, path


def test_the_pooled_output_is_the_first_vector(encoder):
    output = encoder({"token_ids": tokens(2, 7)})
    np.testing.assert_array_equal(output["pooled_output"], output["sequence_output"][:, 0])
    assert set(ElectraEncoder(SMALL, pooler=False)({"token_ids": tokens(2, 7)})) == {"sequence_output"}


def test_errors(encoder):
    with pytest.raises(ConfigError, match="'embedding_size' is 0; it must be at least 1 and at most 65,536"):
        ElectraConfig(50, 24, 1, 2, 40, embedding_size=0)
    with pytest.raises(ConfigError, match="sequences of 17 tokens do not fit a model with max_positions=16"):
        encoder({"token_ids": tokens(1, 17)})
