"""Probes of layers: the vectors of words by plain calls, the controls, and classes that a layer does or does not show."""

import numpy as np
import pytest
from fakes import bert, tokenizer_of

from bert_tf.errors import DataError
from bert_tf.probing import LayerReader, Layers, control_tags, layer_vectors

TOKENIZER = tokenizer_of("the un ##believ ##able film is good bad one a")
SENTENCES = [["the", "unbelievable", "film"], ["is", "good"], ["a"]]


@pytest.fixture(scope="module")
def encoder():
    return bert(TOKENIZER, 2, positions=12, output_hidden_states=True)


def test_vectors_are_those_of_the_first_token_of_each_word(encoder):
    found = layer_vectors(LayerReader(encoder, TOKENIZER, 2), SENTENCES)
    assert found.words.shape == (3, 6, 16) and found.sentences.shape == (3, 3, 16)
    states = encoder({"token_ids": np.array([[2, 5, 6, 7, 8, 9, 3]])})["hidden_states"]
    expected = np.stack(states)[:, 0, [1, 2, 5]]
    np.testing.assert_allclose(found.words[:, :3], expected, atol=1e-5)
    np.testing.assert_allclose(found.sentences[:, 0], expected.mean(axis=1), atol=1e-5)
    parts = layer_vectors(LayerReader(encoder, TOKENIZER), [["the", "unbelievable", "film"] * 4], sequence_length=8)
    assert parts.words.shape == (3, 12, 16)  # a long sentence in parts, each word once


def test_control_tags_belong_to_words():
    words = [f"w{i % 300}" for i in range(3000)]
    tags = np.array(["A"] * 75 + ["B"] * 25)
    drawn = control_tags(words, tags)
    assert len({(word, tag) for word, tag in zip(words, drawn)}) == 300
    assert abs(np.mean(drawn[:300] == "A") - 0.75) < 3 * np.sqrt(0.75 * 0.25 / 300)
    assert (control_tags(words, tags, seed=1) != drawn).any()


def test_what_the_vectors_show_is_found(encoder):
    rng = np.random.default_rng(0)
    words = ["the", "film", "is", "good", "bad", "one", "a", "unbelievable"]
    kinds = dict(zip(words, ["D", "N", "V", "A", "A", "N", "D", "A"]))

    def sentences(count):
        drawn = [[str(word) for word in rng.choice(words, rng.integers(1, 9))] for _ in range(count)]
        return drawn, [[kinds[word] for word in sentence] for sentence in drawn]

    done = []
    parts = [sentences(150), sentences(60)]
    found = Layers().run(LayerReader(encoder, TOKENIZER), parts, progress=lambda *n: done.append(n))
    (*tags, baseline), (*selectivity, _), (*length, most_frequent), (*order, _) = (values for _, values in found.rows)
    assert done[-1] == (12, 12)
    # The tag depends on the word alone: the embeddings show it, as they show the control tag of a word.
    control, classes = found.facts["control"], found.facts["classes"]
    assert tags[0] > 0.95 and control[0] > 0.95 and baseline == 1.0 and classes["tags"] == 4
    assert selectivity == [a - b for a, b in zip(tags, control)]
    # Nothing marks exchanged words in sentences of random words.
    assert abs(order[-1] - 0.5) < 3 * np.sqrt(0.25 / 60)
    assert classes["length"] == 5 and length[0] > most_frequent  # the mean of fewer position vectors differs


def test_errors(encoder):
    few = SENTENCES, [["D", "A", "N"], ["V", "A"], ["D"]]
    with pytest.raises(DataError, match="there must be 5 sentences"):
        Layers().run(LayerReader(encoder, TOKENIZER), [few, few])
    repeated = [[word] * n for n, word in enumerate("the film is good bad one a".split(), 1)]
    for sentences, tags, message in (
        ([["a", "film"], ["one", "film"]] * 6, "DN", "numbers of their words are the same for all training sentences"),
        (repeated, "DNDNDNDN", "orders .* are the same"),
        ([["a"] * n for n in range(1, 9)], "DNDNDNDN", "random tags of their words are the same"),
    ):
        part = sentences, [list(tags[: len(sentence)]) for sentence in sentences]
        with pytest.raises(DataError, match=message):
            Layers().run(LayerReader(encoder, TOKENIZER), [part, part])
