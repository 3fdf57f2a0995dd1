"""A BiLSTM between a model and its head (`task.head.name=bilstm`), against the formula in float64."""

import numpy as np
import pytest
import tiny
from test_features import bilstm_of, inputs_of

from bert_tf.errors import ConfigError
from bert_tf.models import LstmLM, LstmLMConfig, TaskHead
from bert_tf.tasks import Classifier, build_task
from bert_tf.training.depth import depths

TEXTS = ["a good film", "bad", "the awful plot was bad", "fine"]


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_the_outputs_are_those_of_the_formula(kind):
    settings = {"kind": kind, "head": {"name": "bilstm", "layers": 2, "units": 6}, "sequence_length": 16}
    words = [text.split() for text in TEXTS]
    task, train = tiny.learned({
        "classification": {"text": TEXTS, "label": ["pos", "neg", "neg", "pos"]},
        "tagging": {"words": words, "tags": [["y", "y", "x"], *(["x"] * len(some) for some in words[1:])]},
    }[kind], **settings)  # fmt: skip
    model = task.model(tiny.encoder(seed=1, pooler=False))
    (features,) = task.dataset(train, 4)
    x = np.float64(model.backbone(inputs_of(features))["sequence_output"])
    found, (kernel, bias) = model(features)["logits"], (np.float64(w) for w in model.head.dense.get_weights())
    for row, mask in enumerate(features["padding_mask"].numpy()):
        outputs = bilstm_of(model, x[row, mask])
        read = np.concatenate([outputs[-1, :6], outputs[0, 6:]]) if kind == "classification" else outputs
        logits = found[row] if kind == "classification" else found[row][mask]
        np.testing.assert_allclose(logits, read @ kernel + bias, rtol=1e-4, atol=1e-5)
    paths, layers = depths(model, "train.trainable.layer_decay")
    assert {paths[v.path] for layer in model.lstms for v in layer.weights} == {layers + 2}, "at the rate of the head"


def test_a_left_to_right_model_reads_both_directions():
    """The last layer alone sees what comes after a token; the width of the head stays that of the model."""
    decoder = LstmLM(LstmLMConfig(37, hidden_size=12, embedding_size=8, embedding_dropout=0.0), dtype="float32")
    settings = {"kind": "tagging", "labels": ["x", "y"], "head": {"name": "bilstm"}}
    task = build_task(settings, tiny.tokenizer(), backbone=decoder)
    model, plain = task.model(decoder), Classifier(decoder, 2, head=TaskHead("tokens"))
    assert model.head.dense.kernel.shape == plain.head.dense.kernel.shape
    features = {"token_ids": np.array([[5, 6, 7], [5, 6, 8]]), "segment_ids": np.zeros((2, 3), "int32"),
                "padding_mask": np.ones((2, 3), bool)}  # fmt: skip
    first, second = np.asarray(model(features)["logits"])
    assert np.abs(first[0] - second[0]).max() > 1e-6
    first, second = np.asarray(plain(features)["logits"])
    np.testing.assert_array_equal(first[:2], second[:2])


def test_settings_that_do_not_fit():
    decoder = LstmLM(LstmLMConfig(37, hidden_size=12, embedding_size=8), dtype="float32")
    settings = {"labels": ["a", "b"], "head": {"name": "bilstm"}, "decoder": {"linear_gain": True}}
    task = build_task(settings, tiny.tokenizer(), backbone=decoder)
    with pytest.raises(ConfigError, match="without task.decoder.lm_weight and task.head.name=bilstm"):
        task.model(decoder)
