"""The feature-based approach: mixes of layers, a BiLSTM, and a model that keeps its weights."""

import numpy as np
import pytest
import tiny

from bert_tf import config
from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError
from bert_tf.export import ServedTagger
from bert_tf.tasks import check_task
from bert_tf.tasks.features import MIXES, LayerMix, with_hidden_states
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning


def expected_mix(features, states, weight, gamma):
    """Table 7's rows in float64; states[0] are the embeddings."""
    if features == "embeddings":
        return states[0]
    if features in ("last", "second_to_last"):
        return states[-1 if features == "last" else -2]
    chosen = {"weighted_sum_all": states[1:], "scalar_mix": states}.get(features, states[-4:])
    if features == "concatenate_last_four":
        return np.concatenate(chosen, axis=-1)
    shares = np.exp(weight) / np.exp(weight).sum()
    return gamma * sum(share * state for share, state in zip(shares, chosen, strict=True))


@pytest.mark.parametrize("features", MIXES)
def test_mixes_are_those_of_the_table(features):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(7, 2, 3, 4))  # six layers
    mix = LayerMix(features, 6)
    mix.build(None)
    weight, gamma = rng.normal(size={"weighted_sum_all": 6, "scalar_mix": 7}.get(features, 4)), 1.7
    if mix.weights:
        mix.weight.assign(weight)
        mix.gamma.assign(gamma)
    found = mix([np.asarray(state, "float32") for state in states])
    np.testing.assert_allclose(found, expected_mix(features, states, weight, gamma), rtol=1e-5, atol=1e-6)
    assert len(mix.weights) == (2 if features.startswith(("weighted", "scalar")) else 0)


def test_too_few_layers():
    with pytest.raises(
        ConfigError, match="task.frozen_layers.name=weighted_sum_last_four reads 4 layers, but the model has 3"
    ):
        LayerMix("weighted_sum_last_four", 3)
    assert LayerMix("weighted_sum_last_four", 4).numbers == [1, 2, 3, 4]
    assert LayerMix("weighted_sum_all", 12).numbers == list(range(1, 13))


def lstm(x, kernel, recurrent, bias):
    """Keras's LSTM over [S, F], gates i, f, c, o, in float64."""
    h = c = np.zeros(len(recurrent))
    states = []
    for row in x:
        i, f, g, o = np.split(row @ kernel + h @ recurrent + bias, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.array(states)


def directions(bilstm):
    """The weights of both directions, for `lstm`."""
    return [[np.float64(w) for w in part.get_weights()] for part in (bilstm.forward_layer, bilstm.backward_layer)]


SENTENCES = [["Anna", "met", "Bert"], ["a", "film"], ["London"], ["the", "actor", "in", "Paris"]]
TAGS = [["B-PER", "O", "B-PER"], ["O", "O"], ["B-LOC"], ["O", "O", "O", "B-LOC"]]


def tagger(encoder, **settings):
    """(task, examples, model) of the weighted sum of all layers."""
    frozen = {"name": "weighted_sum_all", "lstm_units": 6}
    settings = {"frozen_layers": frozen, "sequence_length": 16, "head": {"dropout": 0.0}} | settings
    task, train = tiny.learned({"words": SENTENCES, "tags": TAGS}, kind="tagging", **settings)
    return task, train, task.model(encoder)


def bilstm_of(model, x):
    """The BiLSTMs of a model on one text, float64 [S, H]."""
    for layer in model.lstms:
        forward, backward = directions(layer)
        x = np.concatenate([lstm(x, *forward), lstm(x[::-1], *backward)[::-1]], axis=-1)
    return x


def inputs_of(features):
    return {name: features[name] for name in ("token_ids", "segment_ids", "padding_mask")}


def test_the_outputs_are_those_of_two_bilstms_without_padding():
    task, train, model = tagger(tiny.encoder(layers=2, seed=1))
    assert len(model.trainable_variables) == 2 + 2 * 6 + 2, "the mix, two BiLSTMs and the output layer"
    (features,) = task.dataset(train, 4)
    states = with_hidden_states(model.backbone)(inputs_of(features))["hidden_states"]
    row = int(np.argmin(features["padding_mask"].numpy().sum(axis=1)))
    length = int(features["padding_mask"].numpy()[row].sum())
    x = np.mean([np.float64(state[row, :length]) for state in states[1:]], axis=0)
    kernel, bias = (np.float64(w) for w in model.head.dense.get_weights())
    predicted, wanted = model(features), bilstm_of(model, x) @ kernel + bias
    np.testing.assert_allclose(predicted["logits"][row, :length], wanted, rtol=1e-4, atol=1e-5)

    served = ServedTagger.of_task(task, model, sequence_length=16).answer(inputs_of(features))
    for index, mask in enumerate(features["padding_mask"].numpy()):
        expected = predicted["probabilities"][index][mask]
        np.testing.assert_allclose(served["label_probabilities"][index][mask], expected, atol=1e-5)


def test_a_text_is_read_by_the_ends_of_the_directions_and_the_mean_of_the_second_mix():
    frozen = {"name": "concatenate_last_four", "lstm_layers": 1, "lstm_units": 6, "mix_at": "both"}
    settings = {"kind": "regression", "sequence_length": 16, "frozen_layers": frozen, "head": {"dropout": 0.0}}
    texts = ["a good film", "bad", "the awful plot was bad"]
    task, train = tiny.learned({"text": texts, "label": [3.0, 1.0, 2.0]}, **settings)
    model = task.model(tiny.encoder(layers=4, seed=1))
    assert not task.needs_pooler(model.backbone.config) and not any(v.path.startswith("mix") for v in model.weights)
    (features,) = task.dataset(train, 3)
    layers = with_hidden_states(model.backbone)(inputs_of(features))["hidden_states"][-4:]
    states = np.concatenate([np.float64(layer) for layer in layers], axis=-1)
    (layer,), (kernel, bias) = model.lstms, (np.float64(w) for w in model.head.dense.get_weights())
    forward, backward = directions(layer)
    outputs = model.outputs(features)
    for row, mask in enumerate(features["padding_mask"].numpy()):
        x = states[row, mask]
        read = np.concatenate([lstm(x, *forward)[-1], lstm(x[::-1], *backward)[-1], x.mean(axis=0)])
        np.testing.assert_allclose(outputs[row], read @ kernel + bias, rtol=1e-4, atol=1e-5)


def test_the_penalty_of_the_mix_counts_once_in_an_update_and_for_a_question_with_any_number_of_options():
    frozen = {"name": "weighted_sum_all", "lstm_layers": 1, "lstm_units": 4, "mix_l2": 0.1}
    options = [["good", "bad", "fine"], ["a film", "plot"]]
    rows = [{"context": "a film", "options": some, "label": n} for n, some in enumerate(options)]
    task, examples = tiny.learned(rows, kind="multiple_choice", frozen_layers=frozen, sequence_length=16)
    model = task.model(tiny.encoder(layers=2, seed=1))
    model.mixes[0].weight.assign([1.0, 2.0])
    model.compile(AdamW(0.0), accumulation_steps=2)
    losses = model.fit(task.dataset(examples, 2, training=True), verbose=0).history
    assert losses["mix_loss"] == pytest.approx([0.1 * (1 + 4)])
    assert losses["loss"] == pytest.approx([losses["label_loss"][0] + 0.5])


def finetuning(train=None, **task):
    task = {"kind": "tagging", "frozen_layers": {"name": "last"}} | task
    data = {"train": "a.conll", "dev": "a.conll"}
    return config.build(
        FinetuneConfig, {"task": task, "data": data, "init_from": "run", "train": {"trainable": train or {}}}
    )


@pytest.mark.parametrize(("train", "task", "message"), [
    ({"name": "lora"}, {}, "task.frozen_layers.name=last trains no layer of the model; remove train.trainable"),
    ({"freeze": 1}, {}, "remove train.trainable"),
    ({}, {"kind": "classification", "decoder": {"linear_gain": True}}, "decoder.linear_gain=True has no effect with"),
    ({}, {"kind": "text_to_text"}, "unknown key 'task.frozen_layers'"),
])  # fmt: skip
def test_settings_that_contradict_a_frozen_model(train, task, message):
    with pytest.raises(ConfigError, match=message):
        check_finetuning(finetuning(train, **task))
    check_finetuning(finetuning({"name": "head"}))
    assert check_task({"kind": "tagging"}).frozen_features is None
