import keras
import numpy as np
import pytest
from small_models import SIZES, tokens

from bert_tf.errors import ConfigError
from bert_tf.models import preset
from bert_tf.models.electra.config import ElectraConfig, generator_config
from bert_tf.models.electra.model import ElectraEncoder
from bert_tf.objectives import ReplacedTokenDetection

SMALL = ElectraConfig(**SIZES, embedding_size=10, max_positions=16)


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return ElectraEncoder(SMALL, dtype="float32")


def test_the_generators_of_base_and_large_were_released():
    for name, size in (("electra_base", 0.33333), ("electra_large", 0.25)):
        assert generator_config(preset(name), size) == preset(f"{name}_generator")
    # Of a quarter of the width, with one head; the small one that was released is as wide as its discriminator.
    small = generator_config(preset("electra_small"))
    assert (small.hidden_size, small.num_heads, small.intermediate_size, small.embedding_size) == (64, 1, 256, 128)


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


def test_errors():
    with pytest.raises(ConfigError, match="'embedding_size' is 0; it must be at least 1 and at most 65,536"):
        ElectraConfig(50, 24, 1, 2, 40, embedding_size=0)
