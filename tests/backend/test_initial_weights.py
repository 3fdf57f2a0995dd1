"""Initial weights hang on a seed and on names, not on the order in which layers are made."""

import keras
import numpy as np
import pytest

from bert_tf.backend import Dense, SeededByName, TruncatedNormal, initializer
from bert_tf.backend.initial_weights import zero_weights
from bert_tf.models import BertConfig, BertEncoder, T5Config, build_backbone, preset
from bert_tf.objectives import MaskedLM

CONFIG = BertConfig(50, 16, num_layers=2, num_heads=2, intermediate_size=32)


class Two(keras.Model, metaclass=SeededByName):
    """Two layers of other names and of one shape, made in this order or the other one, after further layers or not."""

    def __init__(self, order, others=0):
        super().__init__()
        for i in range(others):
            Dense(3, kernel_initializer=TruncatedNormal(stddev=1.0), name=f"other_{i}").build((None, 3))
        made = {name: Dense(3, kernel_initializer=TruncatedNormal(stddev=1.0), name=name) for name in order}
        for layer in made.values():
            layer.build((None, 3))
        self.first, self.second = made["first"], made["second"]


def kernels(*arguments):
    keras.utils.set_random_seed(1)
    model = Two(*arguments)
    return np.asarray(model.first.kernel), np.asarray(model.second.kernel)


def test_the_order_of_construction_changes_nothing():
    first, second = kernels(["first", "second"])
    for arguments in ((["second", "first"],), (["first", "second"], 3)):
        for found, expected in zip(kernels(*arguments), (first, second)):
            np.testing.assert_array_equal(found, expected)
    assert np.abs(first - second).max() > 0.1


def weights(model):
    return {v.path: np.asarray(v) for v in model.weights if len(v.shape) > 1}


def test_models_that_are_filled_next_begin_with_zeros():
    with zero_weights(), zero_weights(False):
        assert not any(np.any(kernel) for kernel in kernels(["first", "second"]))
    assert all(np.all(kernel) for kernel in kernels(["first", "second"]))


def test_each_variable_and_each_model_has_values_of_its_own():
    keras.utils.set_random_seed(7)
    one, two = weights(BertEncoder(CONFIG)), weights(BertEncoder(CONFIG))
    tables = [x.ravel()[:64] for x in one.values()]  # those of a layer, too: tokens, positions, segments
    assert len({x.tobytes() for x in tables if np.ptp(x)}) == len(tables)
    assert all(not np.array_equal(one[path], two[path]) for path in one)
    keras.utils.set_random_seed(7)
    again = weights(BertEncoder(CONFIG))
    assert all(np.array_equal(one[path], again[path]) for path in one)


def test_layers_of_more_models_change_no_weight_of_a_smaller_one():
    found = []
    for layers in (1, 3):
        keras.utils.set_random_seed(3)
        found.append(weights(build_backbone(T5Config(50, 16, layers, num_heads=2, head_size=8, intermediate_size=32))))
    assert all(np.array_equal(found[1][path], value) for path, value in found[0].items())


def test_values_have_the_deviation_of_their_setting():
    table = weights(BertEncoder(preset("bert_tiny")))["embeddings/token_embeddings"]
    # A normal cut at two deviations has 0.8796 of its deviation.
    assert table.std() == pytest.approx(0.02 * 0.87962566, rel=3 / (2 * table.size) ** 0.5)
    assert abs(table.mean()) < 3 * table.std() / table.size**0.5


def test_an_initializer_with_a_seed_of_its_own_keeps_it():
    class One(keras.Model, metaclass=SeededByName):
        def __init__(self):
            super().__init__()
            self.dense = Dense(3, kernel_initializer=TruncatedNormal(stddev=1.0, seed=5))
            self.dense.build((None, 3))

    expected = keras.initializers.TruncatedNormal(stddev=1.0, seed=5)((3, 3))
    np.testing.assert_array_equal(One().dense.kernel, expected)
    assert type(initializer("he_normal")) is keras.initializers.HeNormal


def test_files_keep_the_initializers(tmp_path):
    model = MaskedLM(BertEncoder(CONFIG))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for path, value in weights(model).items():
        np.testing.assert_array_equal(weights(loaded)[path], value)
