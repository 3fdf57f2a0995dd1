import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import Dropout, UniformNumbers, uniform_of
from bert_tf.backend.randomness import step_randomness
from bert_tf.errors import ConfigError


def masks(layer, inputs, *seeds):
    results = []
    for seed in seeds:
        with step_randomness(tf.constant(seed)):
            results.append(layer(inputs, training=True).numpy())
    return results


def test_the_share_dropped_and_the_mean():
    inputs = tf.ones([1000, 301])
    (dropped,) = masks(Dropout(0.1), inputs, [1, 2])
    count, rate = dropped.size, round(0.1 * 2**24) / 2**24
    sigma = np.sqrt(rate * (1 - rate) / count)
    assert abs((dropped == 0).mean() - rate) < 3 * sigma
    assert abs(dropped.mean() - 1) < 3 * sigma / (1 - rate)
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)


def test_masks_are_a_function_of_the_seed_and_the_layer():
    first, second = Dropout(0.5), Dropout(0.5)
    inputs = tf.ones([64, 64])
    a, b, c = masks(first, inputs, [1, 2], [1, 2], [1, 3])
    assert np.array_equal(a, b) and not np.array_equal(a, c)
    with step_randomness(tf.constant([1, 2])):
        x, y = first(inputs, training=True).numpy(), second(inputs, training=True).numpy()
    assert np.array_equal(x, a)
    share_equal = ((x > 0) == (y > 0)).mean()  # independent masks agree half the time
    assert abs(share_equal - 0.5) < 3 * np.sqrt(0.25 / x.size)


DRAWS = [lambda: Dropout(0.5)(tf.ones([64]), training=True), lambda: UniformNumbers().draw(64)]


@pytest.mark.parametrize("draw", DRAWS)
def test_outside_a_train_step_tensorflow_draws(draw):
    """Not Keras, whose generator is a variable: made inside the step of a user's own model, it fails under a strategy."""
    drawn = []
    for seed in (3, 3, 4):
        tf.random.set_seed(seed)
        drawn.append(draw().numpy())
    assert np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[0], drawn[2])
    assert (drawn[0] > 0).any()


@pytest.mark.parametrize("compiled", [False, True])
def test_graph_and_xla_draw_the_same_mask(compiled):
    layer, inputs = Dropout(0.3), tf.ones([7, 9])

    @tf.function(jit_compile=compiled)
    def run(seed):
        with step_randomness(seed):
            return layer(inputs, training=True)

    assert np.array_equal(run(tf.constant([5, 6])).numpy(), masks(layer, inputs, [5, 6])[0])


class Holder(keras.layers.Layer):
    """Layers in the attributes of these names."""

    def __init__(self, name=None, **parts):
        super().__init__(name=name)
        for attribute, part in parts.items():
            setattr(self, attribute, part)


def masks_of(model, *layers):
    """What each layer inside `model` keeps of ones."""
    with step_randomness(tf.constant([1, 2]), model):
        return [(layer(tf.ones([64]), training=True) > 0).numpy().tolist() for layer in layers]


def test_masks_hang_on_the_names_of_layers_alone():
    """Not on attributes, lists, the order of making and holding, the model's own name or the models made before."""

    def dropouts():
        first, second = Dropout(0.5, name="input_dropout"), Dropout(0.5, name="output_dropout")
        return first, second, Dropout(0.5), Dropout(0.5)

    first, second, third, fourth = dropouts()
    block = Holder("layer_0", a=first, b=second, c=third, d=fourth)
    expected = masks_of(Holder("bert", encoder=Holder(block=block), head=Dropout(0.5)), *block._layers)
    assert all(a != b for i, a in enumerate(expected) for b in expected[:i])

    second, first = Dropout(0.5, name="output_dropout"), Dropout(0.5, name="input_dropout")
    _, _, third, fourth = dropouts()
    block = Holder("layer_0", norm=keras.layers.LayerNormalization(), parts=[fourth, [third, second]], first=first)
    holder = Holder(blocks=[Holder("layer_1", x=Dropout(0.5)), block], alias=block)
    outside = Dropout(0.5)
    assert masks_of(Holder(first=Dropout(0.5), rest={"encoder": holder}), first, second, third, fourth) == expected
    assert masks_of(holder, outside) == masks_of(block, outside)  # however many layers the model has


def test_layers_of_one_name_have_masks_of_their_own_and_a_shared_one_draws_anew():
    shared, *twins = Dropout(0.5), Dropout(0.5, name="twin"), Dropout(0.5, name="twin")
    model = Holder(one=Holder("one", inner=shared), two=Holder("two", inner=shared), parts=twins)
    drawn = masks_of(model, shared, shared, *twins)
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])
    other = Holder(two=Holder("two", inner=shared), one=Holder("one", inner=shared), parts=twins)
    assert masks_of(other, shared, shared, *twins) == drawn


def test_two_layers_of_one_path_are_refused():
    model = Holder("model", parts=[Dropout(0.5, name="x:1"), Dropout(0.5, name="x"), Dropout(0.5, name="x")])
    with pytest.raises(ConfigError, match="two layers of 'model' have the path 'x:1'; give one of them another name"):
        masks_of(model, *model._layers)


def test_nothing_is_dropped_at_inference():
    with step_randomness(tf.constant([1, 2])):
        assert np.array_equal(Dropout(0.5)(tf.ones([8, 8]), training=False).numpy(), np.ones([8, 8]))


def test_masks_of_neighbouring_places_layers_and_steps_know_nothing_of_each_other():
    layer, ones = Dropout(0.5), tf.ones([1 << 20])
    step, following = masks(layer, ones, [7, 0], [8, 0])
    with step_randomness(tf.constant([7, 0])):
        layer(ones, training=True)
        second = layer(ones, training=True).numpy()
    kept = step > 0
    three_sigma = 3 * np.sqrt(0.25 / kept.size)
    for other in (following > 0, second > 0):
        assert abs((kept == other).mean() - 0.5) < three_sigma
    for distance in (1, 2, 3, 8, 64, 128, 512, 4096, 65536):
        assert abs((kept[distance:] == kept[:-distance]).mean() - 0.5) < three_sigma, distance
    for size in (64, 1024, 16384):  # sums of blocks spread as those of independent draws do
        sums = kept.reshape(-1, size).sum(1)
        assert abs(sums.var() / (size / 4) - 1) < 3 * np.sqrt(2 / len(sums))


def test_numbers_are_below_one_where_all_bits_are_set():
    number = uniform_of(0, tf.constant([30_080_113]), 0).numpy()[0]  # the 24 bits of this row are ones
    assert number == np.float32(1 - 2**-24) < 1
