"""Each task, from Python lists to predictions: a tiny encoder learns a small rule completely."""

import random

import keras
import pytest
import tiny

from bert_tf.backend import AdamW
from bert_tf.tasks import load_task

FILLER = "the film was a plot actor in , .".split()


def filler(rng, low=2, high=8):
    return [rng.choice(FILLER) for _ in range(rng.randint(low, high))]


def insert(rng, words, word):
    words.insert(rng.randint(0, len(words)), word)
    return words


def train(task, examples, epochs, encoder=None, learning_rate=3e-3):
    model = task.model(encoder or tiny.encoder())
    steps = task.steps_per_epoch(examples, 16)
    schedule = keras.optimizers.schedules.PolynomialDecay(learning_rate, steps * epochs, learning_rate / 10)
    model.compile(AdamW(schedule, weight_decay=0.0))
    for epoch in range(epochs):
        history = model.fit(task.dataset(examples, 16, training=True, seed=1, epoch=epoch), verbose=0)
    assert len(history.history["loss"]) == 1
    return model


def test_pairs(tmp_path):
    """The label is the place in the first text, whatever the second one says."""
    rng = random.Random(1)
    places = [[rng.choice(["london", "paris"]) for _ in range(200)] for _ in range(2)]
    firsts, seconds = ([" ".join([*filler(rng, 0, 3), place]) for place in some] for some in places)
    pairs = {"text": firsts[:150], "text_pair": seconds[:150], "label": places[0][:150]}
    task, examples = tiny.learned(pairs, sequence_length=32)
    dev = task.read({"text": firsts[150:], "text_pair": seconds[150:], "label": places[0][150:]})
    model = train(task, examples, epochs=8)
    scores = task.evaluate(model, dev)
    assert scores["accuracy"] > 0.98 and scores["matthews"] > 0.95 and not scores["collapsed"]
    answers = task.predict(model, [("in london", "in paris"), ("in paris", "in london")])
    assert [answer["label"] for answer in answers] == ["london", "paris"]
    for answer in answers:
        assert sum(answer["probabilities"].values()) == pytest.approx(1.0, abs=1e-6)
        assert answer["probability"] == max(answer["probabilities"].values())
    task.save(tmp_path)
    again = load_task(tmp_path, task.tokenizer)
    assert again.pairs is True and again.labels == ("london", "paris")
    assert again.evaluate(model, dev) == scores


def test_tagging(tmp_path):
    rng = random.Random(3)
    sentences, tags = [], []
    for _ in range(150):
        words, marks = [], []
        for _ in range(rng.randint(2, 5)):
            for word in filler(rng, 1, 3):
                words.append(word)
                marks.append("O")
            if rng.random() < 0.5:
                words += ["Anna", "Johnson"][: rng.choice([1, 2])]
                marks += ["B-PER", "I-PER"][: len(words) - len(marks)]
            else:
                words.append(rng.choice(["London", "Paris"]))
                marks.append("B-LOC")
        sentences.append(words)
        tags.append(marks)
    training = {"words": sentences[:100], "tags": tags[:100]}
    task, examples = tiny.learned(training, kind="tagging", sequence_length=32)
    dev = task.read({"words": sentences[100:], "tags": tags[100:]})
    assert (task.metric, task.state.scheme) == ("f1", "IOB2")
    assert task.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    model = train(task, examples, epochs=8)
    scores = task.evaluate(model, dev)
    assert scores["f1"] == 1.0 and scores["accuracy"] == 1.0
    assert scores["words"] == sum(map(len, sentences[100:]))
    text = "The film, Anna Johnson was in  London."
    (answer,) = task.predict(model, [text])
    assert [word["word"] for word in answer["words"]] == "The film , Anna Johnson was in London .".split()
    assert [(e["type"], e["text"]) for e in answer["entities"]] == [("PER", "Anna Johnson"), ("LOC", "London")]
    for part in answer["words"] + answer["entities"]:
        assert text[part["start"] : part["end"]] == part.get("word", part.get("text"))
    (split,) = task.predict(model, [["The", "film", "Anna", "Johnson", "was", "in", "Paris"]])
    assert split["text"] == "The film Anna Johnson was in Paris"
    assert [e["text"] for e in split["entities"]] == ["Anna Johnson", "Paris"]
    task.save(tmp_path)
    again = load_task(tmp_path, task.tokenizer)
    assert (again.labels, again.state.scheme, again.metric) == (task.labels, "IOB2", "f1")
    assert again.predict(model, [text]) == [answer]
