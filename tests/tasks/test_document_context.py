"""Sentences in their documents: each with the most context that fits, and scored once."""

import itertools

import numpy as np
import pytest
import tiny

from bert_tf.errors import DataError
from bert_tf.tasks import build_task
from bert_tf.tasks.rows.conll import read_conll
from bert_tf.tasks.tagging.sequences import Words, cut_sequences, surroundings
from bert_tf.tokenizers.layout import build_layout


def test_a_sentence_stands_in_the_middle_of_its_window():
    rng = np.random.default_rng(0)
    for room in (4, 7, 20, 1000):
        documents = [[list(rng.integers(0, 99, rng.integers(0, 5))) for _ in range(n)] for n in (1, 6, 2)]
        sequences = [sentence for document in documents for sentence in document]
        found = surroundings(sequences, np.repeat([0, 1, 2], [1, 6, 2]), room)
        number = 0
        for document in documents:
            whole, start = sum(document, []), 0
            for sentence in document:
                left, right = found[number]
                end, number = start + len(sentence), number + 1
                # The best of all windows that hold the sentence: the longest, then the most even one.
                windows = itertools.product(range(start + 1), range(end, len(whole) + 1))
                fitting = [(a, b) for a, b in windows if b - a <= room or (a, b) == (start, end)]
                best = max((b - a, -abs((start - a) - (b - end))) for a, b in fitting)
                chosen = (len(left) + len(sentence) + len(right), -abs(len(left) - len(right)))
                assert chosen == best
                assert left + sentence + right == whole[start - len(left) : end + len(right)]
                start = end


def test_only_the_words_of_the_sentence_carry_tags():
    sentences = [[[1], [2, 3]], [[4, 5]], [[6], [7], [8], [9]], [[10]]]
    words = [Words(pieces, [0] * len(pieces), [1] * len(pieces)) for pieces in sentences]
    labels, layout = [[1, 2], [3], [4, 5, 6, 7], [8]], build_layout("bert", 101, 102)
    rows = cut_sequences(words, 7, layout, labels, documents=[0, 0, 0, 1])
    assert rows.first.to_list() == [[1, 2, 3, 4, 5], [3, 4, 5, 6, 7], [5, 6, 7, 8, 9], [10]]
    assert rows.labels.to_list() == [[1, 2, 0, 0, 0], [0, 3, 0, 0, 0], [0, 4, 5, 6, 7], [8]]
    assert rows.weights.to_list() == [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 1, 1], [1]]
    assert [places.tolist() for places in rows.tagged_pieces] == [[1, 2], [2], [2, 3, 4, 5], [1]]
    assert (rows.lengths.tolist(), rows.owners) == ([7, 7, 7, 3], [0, 1, 2, 3])
    # Too long for a sequence: two parts, each with context, and every word in one of them.
    rows = cut_sequences(words, 5, layout, labels, documents=[0, 0, 0, 1])
    assert rows.first.to_list() == [[1, 2, 3], [4, 5, 6], [6, 7, 8], [7, 8, 9], [10]]
    assert [places.tolist() for places in rows.tagged_pieces] == [[1, 2], [1], [1, 2, 3], [3], [1]]
    assert rows.owners == [0, 1, 2, 2, 3]
    assert rows.count_tokens(7) == (10, 1)


CONLL = "-DOCSTART- O\n\nanna O\nmet O\n\njohn O\n\n-DOCSTART- O\n\nlondon B-LOC\n"
CONLLU = "# newdoc id = a\n# x = 1\n1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n\n# newdoc id = b\n1\tb\tb\tX\t_\t_\t_\t_\t_\t_\n"


def test_where_documents_begin(write):
    paths = write("eng.train", CONLL), write("a.conllu", CONLLU)
    found = [[sentence.document for _, sentence in read_conll(path).rows] for path in paths]
    assert found == [[1, 1, 2], [1, 2]]
    plain = write("plain.conll", "anna O\n\njohn O\n\nlondon B-LOC\n")
    task = build_task({"kind": "tagging", "context": "document", "sequence_length": 16}, tiny.tokenizer())
    assert task.read(plain, labelled=False).documents is None
    with pytest.raises(DataError, match="plain.conll marks no documents .* -DOCSTART- .* train with task.context=file"):
        task.read(plain)
    found = {}
    for context in ("sentence", "document", "file"):
        task = build_task({"kind": "tagging", "context": context, "sequence_length": 16}, task.tokenizer)
        task, examples = tiny.learned(plain if context == "file" else paths[0], task)
        found[context] = [task.tokenizer.decode(row) for row in task.sequences(examples).first.to_list()]
        assert sum(map(len, task.sequences(examples).tagged_pieces)) == sum(map(len, examples.words))
    in_python = task.read([["anna"], ["john"]], labelled=False)
    assert [len(row) for row in task.sequences(in_python).first] == [1, 1]
    assert found["sentence"] == ["anna met", "john", "london"]
    assert found["document"] == ["anna met john", "anna met john", "london"]
    assert found["file"] == ["anna john london"] * 3
