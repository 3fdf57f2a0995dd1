"""Layers computed in shares give what the whole layers give."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from exports import bert

from bert_tf.backend import Dense
from bert_tf.errors import ConfigError
from bert_tf.export import ServedClassifier, layer_shares, write_saved_model
from bert_tf.export.storage import StoredWeights
from bert_tf.layers.attention import Attention
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.families import build_config, build_encoder
from bert_tf.tasks.heads import Classifier

SIZES = {"vocabulary_size": 50, "hidden_size": 24, "num_layers": 2, "num_heads": 6, "intermediate_size": 50}
FAMILIES = ("bert", "roberta", "albert", "electra", "spanbert", "distilbert", "modernbert", "xlnet")


@pytest.fixture
def every_layer_is_large(monkeypatch):
    monkeypatch.setattr(layer_shares, "LARGE", 1)


def features():
    ids = np.random.default_rng(0).integers(5, 50, (3, 11))
    return {
        "token_ids": tf.constant(ids, tf.int32),
        "segment_ids": tf.zeros(ids.shape, tf.int32),
        "padding_mask": tf.constant(np.arange(11) < np.array([[11], [4], [7]])),
    }


def encoder(family, **arguments):
    narrow = {"embedding_size": 8} if family in ("albert", "electra") else {}
    model = build_encoder(build_config({"family": family, **SIZES, **narrow}), **arguments)
    random = np.random.default_rng(1)
    model.set_weights([w + random.normal(0, 0.3, w.shape) for w in model.get_weights()])  # biases too
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [2, 3, 5])  # five divide no heads, and of the columns the intermediate ones
def test_the_numbers_are_those_of_whole_layers(family, count, every_layer_is_large):
    scores = {} if family == "xlnet" else {"output_attention_scores": True}
    model = encoder(family, pooler=True, **scores)
    whole = tf.nest.flatten(model(features()))
    weights = StoredWeights(model, count)
    assert sum(int(tf.size(v)) for v in weights.variables) == model.count_params()  # each number is stored once
    with weights.read():
        for one, expected in zip(tf.nest.flatten(model(features())), whole, strict=True):
            np.testing.assert_allclose(one, expected, atol=5e-6)
        at_first = model.outputs_at(features(), tf.zeros((3, 1), tf.int32))["pooled_output"]
    np.testing.assert_allclose(at_first, model(features())["pooled_output"], atol=5e-6)
    assert all("call" not in vars(layer) for layer in model._flatten_layers())  # the model has its own again


def test_every_stored_matrix_is_read(every_layer_is_large):
    model = encoder("bert", pooler=True)
    weights = StoredWeights(model, 2)
    with weights.read():
        before = model(features())["pooled_output"]
        for variable in weights.variables:
            if len(variable.shape) == 2:
                kept = variable.numpy()
                variable.assign(tf.reverse(kept, [0, 1]))
                assert np.any(model(features())["pooled_output"] != before), variable
                variable.assign(kept)


@pytest.mark.parametrize("heads", [1, 6])
def test_a_mask_of_one_head_or_of_each(heads, every_layer_is_large):
    layer = Attention(num_heads=6, dropout=0.1, initializer_range=0.5)
    x = tf.random.stateless_normal((2, 5, 24), (0, 1))
    mask = -10 * tf.random.stateless_uniform((2, heads, 5, 5), (0, 2))
    whole, of_whole = layer(x, mask, return_attention_scores=True)
    output, probabilities = layer_shares.in_shares([layer], 2)[layer](x, mask, return_attention_scores=True)
    np.testing.assert_allclose(output, whole, atol=1e-5)
    np.testing.assert_allclose(probabilities, of_whole, atol=1e-5)


def test_adapters_are_part_of_what_is_stored(every_layer_is_large):
    layer = Dense(6)
    layer.build((None, 4))
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(np.ones((2, 6)))
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    np.testing.assert_allclose(layer_shares.in_shares([layer], 2)[layer](x), layer(x), atol=1e-6)
    assert np.abs(layer(x) - x @ layer._kernel.numpy()).max() > 1e-3


def test_small_layers_stay_whole():
    model = encoder("bert")
    assert layer_shares.in_shares(model._flatten_layers(), 2) == {}
    large = BertEncoder(BertConfig(vocabulary_size=50, hidden_size=256, num_layers=1, num_heads=4, intermediate_size=512))
    names = {layer.name for layer in layer_shares.in_shares(large._flatten_layers(), 2)}
    assert names == {"attention", "output", "intermediate", "dense"}, names


def test_a_served_model_in_shares(tokenizer, tmp_path, every_layer_is_large):
    keras.utils.set_random_seed(0)
    module = ServedClassifier(Classifier(bert(), 3), tokenizer, ("a", "b", "c"), 32)
    texts = tf.constant(["the cat sat on the mat " * i for i in range(9)])
    answers, numbers = {}, {}
    for count in (1, 2):
        path = write_saved_model(module, tmp_path, shares=count)
        loaded = tf.saved_model.load(str(path))
        answers[count] = loaded.signatures["serving_default"](text=texts)["probabilities"]
        numbers[count] = stored_numbers(path)
    np.testing.assert_allclose(answers[1], answers[2], atol=1e-6)
    assert numbers[1] == numbers[2]


def stored_numbers(path):
    stored = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    names = [name for name in stored.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return sum(stored.get_tensor(name).size for name in names)


def test_static_exports_have_whole_layers(tokenizer, tmp_path, every_layer_is_large):
    module = ServedClassifier(Classifier(bert(), 3), tokenizer, ("a", "b", "c"), 32, static=True)
    path = write_saved_model(module, tmp_path, shares=2)
    shapes = {tuple(shape) for _, shape in tf.train.list_variables(str(path / "variables" / "variables"))}
    assert (16, 32) in shapes and (16, 8) not in shapes


@pytest.mark.parametrize("count", [0, -2, 1.5, True])
def test_shares_are_a_whole_number(count, tokenizer, tmp_path):
    module = ServedClassifier(Classifier(bert(), 3), tokenizer, ("a", "b", "c"), 32)
    with pytest.raises(ConfigError, match=f"shares={count} is not a positive whole number"):
        write_saved_model(module, tmp_path / "export", shares=count)
    assert not (tmp_path / "export").exists()
