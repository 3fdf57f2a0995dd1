"""The transformer biLM: each half of its vectors is that of a GPT-1, which reads the text in that half's direction."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models.elmo.config import TransformerBiLMConfig
from bert_tf.models.elmo.model import TransformerBiLM
from bert_tf.models.gpt1.config import GPT1Config
from bert_tf.models.gpt1.model import GPT1Decoder
from bert_tf.objectives import BidirectionalLM, CausalLM
from tfrecords import WordsConfig

SIZES = {"vocabulary_size": 30, "num_layers": 2, "num_heads": 2, "intermediate_size": 20, "max_positions": 12}
ONE = SIZES | {"initializer_range": 0.3, "dropout": 0.0, "attention_dropout": 0.0}


def models():
    """A biLM with the weights of two GPT-1s, and these: forward and backward."""
    keras.utils.set_random_seed(0)
    both = TransformerBiLM(TransformerBiLMConfig(hidden_size=16, **ONE), dtype="float32")
    known, pair = {v.path: v for v in both.weights}, []
    for direction in ("forward", "backward"):
        gpt = GPT1Decoder(GPT1Config(hidden_size=8, **ONE), dtype="float32")
        for variable in gpt.weights:
            variable.assign(known[variable.path.replace("transformer_layer", f"{direction}_layer")])
        pair.append(gpt)
    return both, *pair


def test_each_half_is_a_one_directional_model():
    both, forward, backward = models()
    ids = np.random.default_rng(0).integers(1, 30, (2, 7)).astype("int32")
    mask, texts = np.arange(7) < [[7], [5]], np.array([[1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0, 0]])
    places = np.array([[0, 1, 2, 3, 0, 1, 2], [0, 1, 2, 3, 4, 0, 0]])
    inputs = {"token_ids": ids, "padding_mask": mask, "sequence_ids": texts, "position_ids": places}
    found = np.asarray(both(inputs)["sequence_output"])
    flipped = {name: value[:, ::-1].copy() for name, value in inputs.items()}
    expected = np.concatenate(
        [forward(inputs)["sequence_output"], backward(flipped)["sequence_output"][:, ::-1]], axis=-1
    )
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)
    outputs = both({"token_ids": ids, "padding_mask": mask})
    x, pooled = np.asarray(outputs["sequence_output"]), outputs["pooled_output"]
    np.testing.assert_array_equal(pooled, [np.r_[x[0, 6, :8], x[0, 0, 8:]], np.r_[x[1, 4, :8], x[1, 0, 8:]]])
    # One table of embeddings, and the layers of both.
    table = (30 + 12) * 8
    assert both.count_params() - table == 2 * (forward.count_params() - table)


def test_both_directions_are_trained_as_causal_models_of_tokens():
    both, forward, backward = models()
    objective = BidirectionalLM(both)
    ids = np.random.default_rng(1).integers(1, 30, (2, 6)).astype("int32")
    features = {"token_ids": ids, "padding_mask": np.arange(6) < [[6], [4]]}
    losses, _ = objective.loss_sums(features, training=False)
    flipped = {name: value[:, ::-1].copy() for name, value in features.items()}
    flipped["position_ids"] = np.broadcast_to(np.arange(6)[::-1], (2, 6))
    for name, gpt, given in (("forward_lm", forward, features), ("backward_lm", backward, flipped)):
        expected = CausalLM(gpt).loss_sums(given, training=False)[0]["causal_lm"]
        assert float(losses[name]) == pytest.approx(float(expected), rel=1e-5)
    assert objective.word_output is None and objective.settings.words == WordsConfig()


def test_settings_that_do_not_fit():
    with pytest.raises(ConfigError, match="it must be a multiple of 2 \\* num_heads, 4"):
        TransformerBiLMConfig(hidden_size=6, **ONE)
    with pytest.raises(ConfigError, match="this one reads tokens; remove it"):
        BidirectionalLM(models()[0], WordsConfig(size=30))
