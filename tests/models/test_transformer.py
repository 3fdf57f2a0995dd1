"""The Transformer of 2017: parity with PyTorch's layers in float64 (see tests/golden/transformer.py), the cache, packing."""

import keras
import numpy as np
import pytest
from decoding import assert_states_logits_and_loss, cached_and_whole, loss_of
from model_goldens import assert_gradients, load, part
from small_models import moved

from bert_tf.errors import ConfigError
from bert_tf.models import Transformer, TransformerConfig
from bert_tf.models.weights import WeightMap, load_weights

SIZES = dict(vocabulary_size=31, hidden_size=12, num_layers=2, num_heads=3, intermediate_size=20, num_decoder_layers=3)
LAYERS = {"self_attn": "attention", "multihead_attn": "cross_attention"}
PROJECTIONS = {"query": "query", "key": "key", "value": "value", "out_proj": "output"}
NORMS = {"encoder": ("attention", "output"), "decoder": ("attention", "cross_attention", "output")}


def torch_names(norm):
    """The `WeightMap` of the names in the golden files, which are PyTorch's."""
    dense, norms = {}, {}
    for stack, norm_names in NORMS.items():
        theirs, ours = f"{stack}.{{layer}}", f"{stack}_layer_{{layer}}"
        for layer, name in LAYERS.items():
            if stack == "decoder" or layer == "self_attn":
                dense |= {f"{theirs}.{layer}.{a}": f"{ours}/{name}/{b}" for a, b in PROJECTIONS.items()}
        dense |= {f"{theirs}.linear1": f"{ours}/intermediate", f"{theirs}.linear2": f"{ours}/output"}
        for i, name in enumerate(norm_names, 1):
            name = "feed_forward" if name == "output" and norm == "pre" else name
            norms[f"{theirs}.norm{i}"] = f"{ours}/{name}_layer_norm"
        norms[f"{stack}_norm"] = f"{stack}_layer_norm"
    return WeightMap(arrays={"tokens.weight": "embeddings/token_embeddings"}, dense=dense, norms=norms)


@pytest.fixture(scope="module", params=["post_interleaved", "pre_concatenated", "post_biases"])
def case(request):
    golden, settings = load(f"transformer_{request.param}")
    config = TransformerConfig(**settings)
    model = Transformer(config, output_hidden_states=True)
    load_weights(model, part(golden, "weights/"), torch_names(config.norm))
    return model, golden


def test_hidden_states_logits_and_loss(case):
    assert_states_logits_and_loss(*case)


def test_gradients(case):
    model, golden = case
    names, count = torch_names(model.config.norm), len(model.trainable_variables)
    # A constant added to all keys adds the same to all scores of a query: its gradient is 0.
    assert_gradients(model, lambda: loss_of(model, golden)[2], golden, names, count, 2e-5, zeros="key.bias")


def make(seed=3, **changes):
    keras.utils.set_random_seed(seed)
    return moved(Transformer(TransformerConfig(**SIZES | changes)), seed)


@pytest.mark.parametrize("norm, positions", [("post", "interleaved"), ("pre", "concatenated")])
def test_cached_equals_uncached(norm, positions):
    np.testing.assert_allclose(*cached_and_whole(make(norm=norm, positions=positions)), atol=1e-5)


def test_initial_weights():
    model = Transformer(TransformerConfig(3000, 64, num_layers=1, num_heads=4, intermediate_size=256))
    weights = {v.path: np.asarray(v) for v in model.weights}
    assert np.std(weights["embeddings/token_embeddings"]) == pytest.approx(64**-0.5, rel=0.01)
    for path, fans in (("cross_attention/value", 128), ("intermediate", 320), ("output", 320)):
        kernel = weights[f"decoder_layer_0/{path}/kernel"]
        assert np.std(kernel) == pytest.approx((2 / fans) ** 0.5, rel=0.03)  # Glorot and Bengio 2010, equation 16
        assert np.abs(kernel).max() < (6 / fans) ** 0.5  # uniform
    assert not any("attention" in path and path.endswith("/bias") for path in weights)


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="even hidden_size, got 15"):
        TransformerConfig(**SIZES | {"hidden_size": 15})
    with pytest.raises(ConfigError, match="hidden_size=16 is not a multiple of num_heads=3"):
        TransformerConfig(**SIZES | {"hidden_size": 16})
    with pytest.raises(ConfigError, match="'positions' is 'learned'"):
        TransformerConfig(**SIZES, positions="learned")
