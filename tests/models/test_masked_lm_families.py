"""What holds for every family that is pretrained by masked LM, and what is each one's own."""

import dataclasses

import keras
import numpy as np
import pytest
import small_models
from small_models import tokens

from bert_tf.errors import ConfigError
from bert_tf.models import AlbertConfig, AlbertEncoder, ModernBertConfig, ModernBertEncoder, RobertaConfig
from bert_tf.models.families import PRESETS, build_config
from bert_tf.models.roberta.model import RobertaEncoder

SIZES = small_models.SIZES | {"num_layers": 4}


def test_positions_follow_the_tokenizers_padding_id_where_they_depend_on_it():
    for section in ({"preset": "roberta_base"}, {"family": "roberta", **SIZES}):
        assert build_config(section).padding_id == 1
        assert build_config(section, vocabulary_size=90, padding_id=0).padding_id == 0
        assert build_config(section | {"padding_id": 7}, padding_id=0).padding_id == 7
    assert build_config({"preset": "distilbert_base"}, padding_id=0) == PRESETS["distilbert_base"].config


# === RoBERTa ===


def test_roberta_counts_positions_past_the_padding_id():
    encoder = RobertaEncoder(RobertaConfig(**SIZES, max_positions=8, padding_id=3), output_hidden_states=True)
    layer = encoder.get_layer("embeddings")
    assert layer.position_table.shape == (12, 24)
    # fairseq's make_positions: padding gets padding_id, even within a sequence.
    ids = np.array([[9, 8, 7, 3, 3], [9, 3, 8, 7, 6]], "int32")
    positions = np.array([[4, 5, 6, 3, 3], [4, 3, 5, 6, 7]])
    table, segment = np.asarray(layer.position_table), np.asarray(layer.segment_table)[0]
    x = np.asarray(layer.token_table)[ids] + table[positions] + segment
    x = x - x.mean(-1, keepdims=True)
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    ours = encoder({"token_ids": ids, "segment_ids": ids % 2})["hidden_states"][0]
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    # The caller's positions count from 0.
    ours = encoder({"token_ids": ids[:1, :3], "position_ids": np.arange(3)[None]})["hidden_states"][0]
    np.testing.assert_allclose(ours, expected[:1, :3], atol=1e-5)
    with pytest.raises(ConfigError, match="sequences of 9 tokens .* max_positions=8"):
        encoder({"token_ids": tokens(1, 9)})


def test_roberta_padding_rows_begin_at_zero():
    layer = RobertaEncoder(RobertaConfig(**SIZES, padding_id=3)).get_layer("embeddings")
    for table in (layer.token_table, layer.position_table):
        zero = (np.asarray(table) == 0).all(-1)
        np.testing.assert_array_equal(np.flatnonzero(zero), [3])


def test_roberta_without_a_segment_row_as_fairseq():
    config = RobertaConfig(**SIZES, num_segments=0)
    with_row = RobertaEncoder(dataclasses.replace(config, num_segments=1))
    encoder = RobertaEncoder(config)
    assert with_row.count_params() - encoder.count_params() == 24
    weights = {v.path: v for v in with_row.weights}
    weights["embeddings/segment_embeddings"].assign(np.zeros((1, 24)))
    for variable in encoder.weights:
        variable.assign(weights[variable.path])
    inputs = {"token_ids": tokens(2, 7), "segment_ids": tokens(2, 7) % 2}
    np.testing.assert_allclose(encoder(inputs)["sequence_output"], with_row(inputs)["sequence_output"], atol=1e-6)


# === ALBERT ===

ATTENTION, FEED_FORWARD = 4 * (24 * 24 + 24) + 2 * 24, 2 * 24 * 40 + 40 + 24 + 2 * 24


@pytest.mark.parametrize(
    "share, attentions, feed_forwards", [("all", 4, 4), ("attention", 4, 12), ("feed_forward", 12, 4), ("none", 12, 12)]
)
def test_albert_shares_what_it_is_told_to(share, attentions, feed_forwards):
    """Six layers of two blocks in two groups: against a model that shares nothing, told to be equal."""
    config = AlbertConfig(**SIZES | {"num_layers": 6}, embedding_size=10, share=share, num_groups=2, inner_groups=2)
    encoder = AlbertEncoder(config)
    others = 50 * 10 + 512 * 10 + 2 * 10 + 2 * 10 + 10 * 24 + 24 + 24 * 24 + 24
    assert encoder.count_params() == others + attentions * ATTENTION + feed_forwards * FEED_FORWARD

    separate = AlbertEncoder(dataclasses.replace(config, share="none"))
    weights = {v.path: v for v in encoder.weights}
    for variable in separate.weights:
        path = variable.path
        if path.startswith("transformer_group"):
            block, rest = path.split("/", 1)
            layer, inner = int(block.split("_")[2]), block.split("_")[-1]
            group = layer // 3
            part = "attention" if rest.startswith("attention") else "feed_forward"
            number = group if share == "all" else 3 * group if share == part else layer
            path = f"transformer_group_{number}_layer_{inner}/{rest}"
        variable.assign(weights[path])
    inputs = {"token_ids": tokens(2, 9)}
    np.testing.assert_allclose(encoder(inputs)["sequence_output"], separate(inputs)["sequence_output"], atol=1e-5)


def test_albert_paper_counts_of_the_ways_to_share():
    # Lan et al. 2019, table 4: base with E=128, in millions.
    paper = {"all": 12, "attention": 64, "feed_forward": 38, "none": 89}
    config = PRESETS["albert_base_v1"].config
    for share, millions in paper.items():
        with keras.StatelessScope(initialize_variables=False):
            count = AlbertEncoder(dataclasses.replace(config, share=share), pooler=False).count_params()
        assert round(count / 1e6) == pytest.approx(millions, abs=1)


def test_albert_errors():
    with pytest.raises(ConfigError, match="num_groups=5 is more than num_layers=4"):
        AlbertConfig(**SIZES, embedding_size=10, num_groups=5)


# === ModernBERT ===


def test_modernbert_first_layer_and_initializers():
    config = ModernBertConfig(**SIZES | {"num_layers": 18, "hidden_size": 48, "initializer_range": 0.02})
    with_norms = {v.path: v for v in ModernBertEncoder(config).weights}
    assert "transformer_layer_0/attention_layer_norm/gamma" not in with_norms
    assert "transformer_layer_1/attention_layer_norm/gamma" in with_norms
    for name, deviation in (("intermediate", 0.02), ("output", 0.02 / 6), ("attention/output", 0.02 / 6)):
        kernels = [with_norms[f"transformer_layer_{i}/{name}/kernel"] for i in range(18)]
        values = np.concatenate([np.ravel(kernel) for kernel in kernels])
        assert np.abs(values).max() <= 2 * deviation * (1 + 1e-6)
        assert values.std() == pytest.approx(0.8796 * deviation, rel=0.02)
