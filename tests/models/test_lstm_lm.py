"""The LSTM language model: its cache, packed rows, sizes, and its head."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models import PRESETS, build_backbone
from bert_tf.models.families import task_head
from bert_tf.models.lstm.config import LstmLMConfig
from bert_tf.models.lstm.model import LstmLM, RowDropout
from bert_tf.objectives import CausalLM
from bert_tf.tasks.features import with_hidden_states
from bert_tf.tasks.heads import Classifier


def make(**changes):
    keras.utils.set_random_seed(3)
    sizes = {"vocabulary_size": 37, "hidden_size": 12, "embedding_size": 8, "num_layers": 2, "forget_bias": 1.0}
    model = LstmLM(LstmLMConfig(**sizes | changes), dtype="float32")
    if model.output_layer is not None:
        model.output_bias.assign(np.random.default_rng(0).normal(size=37))
    return model


def test_generation_with_a_state_equals_the_whole_text():
    model, rng = make(), np.random.default_rng(1)
    ids, mask = rng.integers(0, 37, (2, 9)).astype("int32"), np.arange(9) >= [[0], [3]]  # padded on the left
    whole = model({"token_ids": ids, "padding_mask": mask})["sequence_output"]
    x, cache = model.decode(ids[:, :5], model.empty_cache(2, 9), 0, mask)
    outputs = [x]
    for position in range(5, 9):
        x, cache = model.decode(ids[:, position : position + 1], cache, position, mask)
        outputs.append(x)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), whole, atol=1e-6)
    alone = model({"token_ids": ids[1:, 3:]})["sequence_output"]
    np.testing.assert_allclose(whole[1:, 3:], alone, atol=1e-6)


def test_logits_are_the_table_and_its_bias():
    model, rng = make(), np.random.default_rng(2)
    x = rng.normal(size=(2, 3, 12)).astype("float32")
    expected = x @ np.float64(model.output_layer.kernel).T + np.float64(model.output_bias)
    np.testing.assert_allclose(model.output_logits(x), expected, atol=1e-5)
    factors = [np.asarray(factor) for factor in model.output_factors(x)]
    np.testing.assert_allclose(factors[0] @ factors[1].T, expected, atol=1e-5)
    features = {"token_ids": rng.integers(0, 37, (2, 6)).astype("int32")}
    whole, blocks = (CausalLM(model, loss_block=block).loss_sums(features, training=False)[0] for block in (None, 4))
    assert float(whole["causal_lm"]) == pytest.approx(float(blocks["causal_lm"]), rel=1e-5)
    tied = make(tied=True, embedding_size=12)
    assert tied.output_table is tied.embedding_table and tied.output_bias is None


def test_sizes():
    """V E + 4 H (E + H + 1) + V (H + 1)."""
    config = PRESETS["lm_lstm"].config
    assert (config.embedding_size, config.hidden_size, config.vocabulary_size) == (512, 1024, 86_934)
    small = make()
    lstms = 4 * 12 * (8 + 12 + 1) + 4 * 12 * (12 + 12 + 1)
    assert small.count_params() == 37 * 8 + lstms + 37 * 13
    head = task_head(config, "classification")
    assert (head.activation, head.dropout, head.width) == ("relu", 0.5, 512)


def test_embeddings_lose_the_same_numbers_at_all_positions():
    keras.utils.set_random_seed(0)
    x = np.asarray(RowDropout(0.5)(np.ones((2, 5, 40), "float32"), training=True))
    assert set(np.unique(x)) == {0.0, 2.0} and np.all(x == x[:, :1]) and np.any(x[0] != x[1])


def test_the_output_of_each_lstm_has_dropout():
    model, ids = make(dropout=0.5, embedding_dropout=0.0, num_layers=1), np.arange(36, dtype=np.int32).reshape(4, 9)
    both = (model({"token_ids": ids}, training=training) for training in (False, True))
    whole, dropped = (np.asarray(outputs["sequence_output"]) for outputs in both)
    kept = dropped != 0
    assert abs(kept.mean() - 0.5) < 3 * np.sqrt(0.25 / kept.size)
    np.testing.assert_allclose(dropped[kept], 2 * whole[kept], rtol=1e-5)


def test_linear_gain_is_a_mean_with_rising_weights():
    model, rng = Classifier(make(embedding_dropout=0.0), 3, dropout=0.0, linear_gain=True), np.random.default_rng(4)
    mask = np.arange(5) < [[5], [2]]
    features = {"token_ids": rng.integers(0, 37, (2, 5)).astype("int32"), "segment_ids": np.zeros((2, 5), "int32"),
                "padding_mask": mask, "labels": np.array([2, 0]), "label_weights": np.ones(2, "float32")}  # fmt: skip
    inputs = {name: features[name] for name in ("token_ids", "padding_mask")}
    logits = np.asarray(model.head(model.backbone(inputs)["sequence_output"]), "float64")
    losses = np.log(np.exp(logits).sum(-1)) - np.stack([logits[0, :, 2], logits[1, :, 0]])
    expected = losses[0] @ [1, 2, 3, 4, 5] / 15 + losses[1, :2] @ [1, 2] / 3
    assert float(model.loss_sums(features, training=True)[0]["label"]) == pytest.approx(expected, rel=1e-5)
    last = losses[0, 4] + losses[1, 1]
    assert float(model.loss_sums(features, training=False)[0]["label"]) == pytest.approx(last, rel=1e-5)
    with pytest.raises(ConfigError, match="task.decoder.linear_gain is for decoders"):
        Classifier(model.backbone, 3, linear_gain=True, lm_weight=0.5)


def test_sizes_that_do_not_fit():
    with pytest.raises(ConfigError, match="tied output layers are the token table"):
        LstmLMConfig(37, hidden_size=12, embedding_size=8, tied=True)
    wide = LstmLMConfig(37, hidden_size=8, embedding_size=12)
    assert build_backbone(wide).output["sequence_output"].shape[-1] == 8
    with pytest.raises(ConfigError, match="embedding_size=12, do not fit into states of hidden_size=8"):
        build_backbone(wide, output_hidden_states=True)


def test_narrow_embeddings_are_a_hidden_state_with_zeros():
    model, ids = make(), np.array([[3, 9, 4, 4], [7, 1, 0, 36]], np.int32)
    states = [np.asarray(x) for x in with_hidden_states(model)({"token_ids": ids})["hidden_states"]]
    assert [x.shape for x in states] == [(2, 4, 12)] * 3
    np.testing.assert_array_equal(states[0], np.pad(np.asarray(model.embedding_table)[ids], [(0, 0), (0, 0), (0, 4)]))
    np.testing.assert_array_equal(states[2], model({"token_ids": ids})["sequence_output"])
