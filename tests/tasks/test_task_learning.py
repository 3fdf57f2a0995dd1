"""From Python lists to predictions: a tiny encoder learns a small rule completely."""

import random

import tiny

from bert_tf.backend import AdamW
from bert_tf.tasks import load_task

#: Words that stand together, with their tags.
NAMES = [[("London", "B-LOC")], [("Paris", "B-LOC")], [("Anna", "B-PER")], [("Anna", "B-PER"), ("Johnson", "I-PER")]]
PARTS = [[(word, "O")] for word in "the film was a plot actor in , .".split()] + 2 * NAMES


def sentences(rng, count):
    drawn = [sum(rng.choices(PARTS, k=rng.randint(3, 9)), []) for _ in range(count)]
    words, tags = ([[pair[i] for pair in sentence] for sentence in drawn] for i in (0, 1))
    return {"words": words, "tags": tags}


def test_tagging(tmp_path):
    rng = random.Random(3)
    task, examples = tiny.learned(sentences(rng, 100), kind="tagging", sequence_length=32)
    dev = task.read(sentences(rng, 50))
    assert (task.metric, task.state.scheme) == ("f1", "IOB2")
    assert task.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    model = task.model(tiny.encoder())
    model.compile(AdamW(3e-3, weight_decay=0.0))
    for epoch in range(8):
        model.fit(task.dataset(examples, 16, training=True, seed=1, epoch=epoch), verbose=0)
    scores = task.evaluate(model, dev)
    assert scores["f1"] == 1.0 and scores["accuracy"] == 1.0
    assert scores["words"] == sum(map(len, dev.words))
    text = "The film, Anna Johnson was in  London."
    (answer,) = task.predict(model, [text])
    assert [word["word"] for word in answer["words"]] == "The film , Anna Johnson was in London .".split()
    assert [(e["type"], e["text"]) for e in answer["entities"]] == [("PER", "Anna Johnson"), ("LOC", "London")]
    for part in answer["words"] + answer["entities"]:
        assert text[part["start"] : part["end"]] == part.get("word", part.get("text"))
    (split,) = task.predict(model, ["The film Anna Johnson was in Paris".split()])
    assert [e["text"] for e in split["entities"]] == ["Anna Johnson", "Paris"]
    task.save(tmp_path)
    assert load_task(tmp_path, task.tokenizer).predict(model, [text]) == [answer]
