"""A family from outside the package, that of test_extending.py: its presets, its published checkpoints, its name."""

import dataclasses

import keras
import numpy as np
import pytest
from test_extending import BiGruConfig, BiGruEncoder

from bert_tf.checkpoints import open_source, write_checkpoint
from bert_tf.errors import ConfigError, DataError
from bert_tf.models import (
    FAMILIES,
    PRESETS,
    Backbone,
    Family,
    Maps,
    Preset,
    build_backbone,
    build_config,
    describe,
    preset,
    register_family,
)
from bert_tf.models.config_map import REQUIRED, ConfigMap
from bert_tf.models.weights import WeightMap

NAMES = {
    "emb.weight": "embeddings/token_embeddings",
    "norm.weight": "embeddings/layer_norm/gamma",
    "norm.bias": "embeddings/layer_norm/beta",
} | {
    f"{way}.{name}": f"both/{way}_gru/gru_cell/{name}"
    for way in ("forward", "backward")
    for name in ("kernel", "recurrent_kernel", "bias")
}
HF = Maps(
    ConfigMap(
        fields={"vocab": ("vocabulary_size", REQUIRED), "width": ("hidden_size", REQUIRED), "drop": ("dropout", 0.1)},
        model_type="gru",
        architectures={(): "GruModel"},
    ),
    WeightMap(arrays=NAMES),
)
GRU = Family(
    name="gru",
    config=BiGruConfig,
    model=BiGruEncoder,
    sizes={"gru_tiny": Preset(BiGruConfig(100, 16), 2_880, 3_284)},
    checkpoints={"hf": HF},
)
IDS = np.random.default_rng(0).integers(5, 100, (3, 7)).astype("int32")


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_family(GRU)
    yield
    FAMILIES.remove("gru")  # other tests count the families
    PRESETS.pop("gru_tiny")


def test_from_settings_to_an_encoder():
    config = build_config({"family": "gru", "hidden_size": 16}, vocabulary_size=100)
    assert config == preset("gru_tiny") == build_config({"preset": "gru_tiny"}) == build_config(describe(config))
    assert type(build_backbone(config, dtype="float32")) is FAMILIES["gru"].model_class() is BiGruEncoder


def test_its_published_checkpoints(tmp_path):
    encoder, other = (build_backbone(preset("gru_tiny"), dtype="float32") for _ in range(2))
    write_checkpoint(encoder, None, tmp_path / "gru")
    source = open_source(tmp_path / "gru")
    assert (source.family, source.config) == ("gru", preset("gru_tiny"))
    source.fill(other)
    np.testing.assert_array_equal(*(e({"token_ids": IDS})["sequence_output"] for e in (encoder, other)))


def test_a_name_has_one_meaning():
    register_family(GRU)  # the same again
    with pytest.raises(ConfigError, match="there is another family of the name 'gru'"):
        register_family(dataclasses.replace(GRU, pair_task="nsp"))
    with pytest.raises(ConfigError, match="there is another preset of the name 'bert_tiny'"):
        register_family(Family("gru_2", BiGruConfig, BiGruEncoder, sizes={"bert_tiny": GRU.sizes["gru_tiny"]}))
    with pytest.raises(ConfigError, match="int does not belong to a registered family"):
        build_backbone(3)


class Characters(Backbone):
    """Ids of rank 3, as ELMo's: the characters of each token."""

    config_class = BiGruConfig

    def __init__(self, config, name="characters", **kwargs):
        dtype = keras.dtype_policies.get("float32")
        inputs = {"character_ids": keras.Input((None, 50), dtype="int32", name="character_ids")}
        table = keras.layers.Embedding(config.vocabulary_size, config.hidden_size, dtype=dtype)
        outputs = {"sequence_output": keras.ops.mean(table(inputs["character_ids"]), 2)}
        super().__init__(config, inputs, outputs, dtype=dtype, name=name, **kwargs)


def test_a_backbone_declares_its_inputs():
    model = Characters(BiGruConfig(100, 8))
    ids = np.zeros((2, 3, 50), "int32")
    assert model({"character_ids": ids})["sequence_output"].shape == (2, 3, 8)
    with pytest.raises(DataError, match=r"'character_ids' must have 3 dimensions, \(None, None, 50\), got \(2, 50\)"):
        model({"character_ids": ids[:, 0]})
    with pytest.raises(DataError, match="characters has no input 'token_ids'"):
        model({"character_ids": ids, "token_ids": ids[:, :, 0]})
    with pytest.raises(DataError, match=r"at least 'character_ids', got \[\]"):
        model({})
