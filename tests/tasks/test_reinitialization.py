"""Random top layers: only those change, and they are drawn from the configured distribution."""

import numpy as np
import pytest
import tiny

from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, build_backbone, build_config
from bert_tf.tasks import build_task
from bert_tf.tasks.reinitialization import reinitialize_top_layers


def test_only_the_top_layers_and_the_pooler_change():
    encoder = tiny.encoder(layers=3, hidden=64)
    for variable in encoder.weights:  # as if pretrained
        variable.assign(variable + 1.0)
    before = {v.path: v.numpy() for v in encoder.weights}
    task = build_task({"labels": ["0", "1"], "sequence_length": 16, "reinitialize_layers": 2}, tiny.tokenizer())
    task.model(encoder)
    changed = {v.path for v in encoder.weights if not np.array_equal(before[v.path], v.numpy())}
    expected = {p for p in before if "transformer_layer_1" in p or "transformer_layer_2" in p or "pooler" in p}
    assert changed == expected
    blocks = {name: encoder.get_layer(f"transformer_layer_{name}").intermediate.kernel.numpy() for name in (1, 2)}
    assert not np.array_equal(blocks[1], blocks[2])
    for kernel in blocks.values():
        # A normal of standard deviation 0.2, cut off at two.
        assert np.abs(kernel).max() <= 0.4
        assert kernel.mean() == pytest.approx(0.0, abs=4 * 0.2 / np.sqrt(kernel.size))
        assert kernel.std() == pytest.approx(0.2 * 0.8796, rel=0.05)
    norm = encoder.get_layer("transformer_layer_2").output_layer_norm
    np.testing.assert_array_equal(norm.gamma, np.ones(64))
    np.testing.assert_array_equal(norm.beta, np.zeros(64))


SIZES = {"vocabulary_size": 50, "hidden_size": 24, "num_layers": 3, "num_heads": 3, "intermediate_size": 40}


# ALBERT is a case of its own below; LSTMs and word vectors have no transformer layers.
OTHERS = {"albert", *(name for name, record in FAMILIES.items() if record.structure == "encoder_decoder")}
OTHERS |= {name for name, record in FAMILIES.items() if "num_heads" not in record.config.__dataclass_fields__}


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - OTHERS) + ["albert with inner groups"])
def test_every_family(family):
    own = {"electra": {"embedding_size": 8}} | dict.fromkeys(("t5_encoder", "t5_decoder"), {"head_size": 8})
    own = own.get(family, {})
    if family.startswith("albert"):
        family, own = "albert", {"embedding_size": 8, "share": "none", "inner_groups": 2}
    encoder = build_backbone(build_config({"family": family} | SIZES | own), pooler=True)
    for variable in encoder.weights:
        variable.assign(variable + 1.0)
    before = {v.path: v.numpy() for v in encoder.weights}
    reinitialize_top_layers(encoder, 1)
    changed = {v.path for v in encoder.weights if not np.array_equal(before[v.path], v.numpy())}
    tops = {"albert": "transformer_group_2_", "transformer_bilm": ("forward_layer_2/", "backward_layer_2/")}
    tops |= {"t5_encoder": "encoder_layer_2/"}
    top = tops.get(family, "transformer_layer_2/")
    pooler = {path for path in before if path.startswith("pooler/")}
    assert changed == {path for path in before if path.startswith(top)} | pooler
    without = ("electra", "gpt1", "gpt2", "t5_decoder", "transformer_bilm")  # whose poolers have no weights
    assert len(changed) > 5 and (pooler or family in without)


@pytest.mark.parametrize("share", ["all", "attention", "feed_forward"])
def test_layers_that_share_weights_are_refused(share):
    config = build_config({"family": "albert", "embedding_size": 8, "share": share} | SIZES)
    encoder = build_backbone(config)
    before = [v.numpy() for v in encoder.weights]
    with pytest.raises(ConfigError, match="the top layers of this AlbertEncoder share weights with the layers below"):
        reinitialize_top_layers(encoder, 1)
    for old, new in zip(before, encoder.weights, strict=True):
        np.testing.assert_array_equal(old, new)


def test_top_layers_that_share_weights_with_each_other_only():
    own = {"embedding_size": 8, "num_layers": 4, "num_groups": 2}
    encoder = build_backbone(build_config({"family": "albert"} | SIZES | own))
    before = {v.path: v.numpy() for v in encoder.weights}
    reinitialize_top_layers(encoder, 2)
    changed = {v.path for v in encoder.weights if not np.array_equal(before[v.path], v.numpy())}
    kernels = {path for path in before if path.endswith("kernel")}
    assert changed & kernels == {p for p in kernels if p.startswith(("transformer_group_1", "pooler/"))}
    with pytest.raises(ConfigError, match="share weights with the layers below"):
        reinitialize_top_layers(encoder, 3)


def test_more_layers_than_there_are():
    task = build_task({"labels": ["0", "1"], "sequence_length": 16, "reinitialize_layers": 4}, tiny.tokenizer())
    with pytest.raises(ConfigError, match="task.reinitialize_layers=4, but the encoder has 3 layers; give 0 to 3"):
        task.model(tiny.encoder(layers=3))
