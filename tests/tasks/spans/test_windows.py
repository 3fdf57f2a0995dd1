"""Windows and labels against loops as google-research/bert run_squad.py has them, and against brute force."""

import random

import numpy as np
import pytest
import tensorflow as tf
import tiny_questions as tiny

from bert_tf.errors import ConfigError
from bert_tf.tasks.spans.windows import cut_windows


def windows_of(length, room, stride):
    """(begin, length) of each, by the loop of the original; one empty window for an empty context."""
    spans, begin = [], 0
    while begin < length:
        size = min(length - begin, room)
        spans.append((begin, size))
        if begin + size == length:
            break
        begin += min(size, stride)
    return spans or [(0, 0)]


def window_of_token(spans, token):
    """The first window with the largest context, in exact hundredths."""
    best, chosen = None, None
    for number, (begin, size) in enumerate(spans):
        if begin <= token < begin + size:
            score = 100 * min(token - begin, begin + size - 1 - token) + size
            if best is None or score > best:
                best, chosen = score, number
    return chosen


def test_windows_are_those_of_the_original():
    draw = random.Random(0)
    cases = [(draw.randint(0, 90), draw.choice([1, 2, 7, 30, 60]), draw.choice([1, 3, 16, 128])) for _ in range(60)]
    cases += [(n, 320, 128) for n in (0, 1, 319, 320, 321, 448, 449, 900)]
    for stride in {stride for _, _, stride in cases}:
        chosen = [(length, room) for length, room, s in cases if s == stride]
        lengths, rooms = (tf.constant(x, tf.int32) for x in zip(*chosen))
        found = cut_windows(lengths, rooms, stride)
        begins, sizes = found.begins.numpy(), found.lengths.numpy()
        for question, (length, room) in enumerate(chosen):
            mine = found.owners.numpy() == question
            spans = windows_of(length, room, stride)
            assert list(zip(begins[mine], sizes[mine])) == spans
            best = np.concatenate([np.arange(a, b) for a, b in zip(found.best_begins[mine], found.best_ends[mine])])
            owners = np.repeat(np.arange(len(spans)), (found.best_ends - found.best_begins).numpy()[mine])
            np.testing.assert_array_equal(best, np.arange(length))  # each token once
            np.testing.assert_array_equal(owners, [window_of_token(spans, token) for token in range(length)])


@pytest.mark.parametrize("layout", ["bert", "roberta", "xlnet"])
def test_rows_and_labels(layout):
    task = tiny.task(layout, sequence_length=14, stride=3, max_query_length=4, impossible_questions=True)
    tokenizer = task.tokenizer
    context = tiny.CONTEXTS[0]
    answers = [[("Paris", context.index("Paris"))], [("n London", context.index("n London"))], []]
    questions = ["Where was Anna born in?", "Where?", "Who is John?"]
    examples = task.read({"question": questions, "context": [context] * 3, "answers": answers})
    task = task.learn(examples)
    sequences = task.sequences(examples)
    (batch,) = task.dataset(examples, 100)
    rows = {name: x.numpy() for name, x in batch.items()}
    order = np.concatenate([indexes for indexes, _ in sequences.plan(task.config, 100)])
    ids, starts, ends = tokenizer.tokenize_with_offsets([context])
    text_of = lambda row, first, last: context[starts[0][first] : ends[0][last]]  # noqa: E731
    held, windows = {0: 0, 1: 0, 2: 0}, sequences.windows
    for row, index in enumerate(order):
        owner, begin, size = (int(x[index]) for x in (windows.owners, windows.begins, windows.lengths))
        question = tokenizer.encode(examples.texts[owner])[:4]
        part = ids[0].numpy()[begin : begin + size].tolist()
        cls, sep = [tokenizer.cls_id], [tokenizer.sep_id]
        expected, offset = {
            "bert": (cls + question + sep + part + sep, 2 + len(question)),
            "roberta": (cls + question + sep + sep + part + sep, 3 + len(question)),
            "xlnet": (part + sep + question + sep + cls, 0),
        }[layout]
        length = int(rows["padding_mask"][row].sum())
        assert rows["token_ids"][row, :length].tolist() == expected and rows["padding_mask"][row, :length].all()
        np.testing.assert_array_equal(np.flatnonzero(rows["context_mask"][row]), np.arange(offset, offset + size))
        spans = windows_of(len(ids[0]), 14 - len(expected) + size, 3)
        assert (begin, size) in spans
        best = [t for t in range(begin, begin + size) if window_of_token(spans, t) == spans.index((begin, size))]
        np.testing.assert_array_equal(np.flatnonzero(rows["start_mask"][row]) - offset + begin, best)
        null = length - 1 if layout == "xlnet" else 0
        start, end = int(rows["start_positions"][row]), int(rows["end_positions"][row])
        assert rows["answerable"][row] == (owner != 2)
        if start == null:
            assert end == null
            continue
        held[owner] += 1
        # "n London" begins within a word: it is snapped outward to whole tokens.
        wanted = {0: "Paris", 1: "in London"}[owner]
        assert text_of(row, start - offset + begin, end - offset + begin) == wanted
    assert held[0] > 1 and held[1] and not held[2]
    if layout == "xlnet":
        row = rows["segment_ids"][0][rows["padding_mask"][0]]
        assert row[-1] == 2 and set(row[:-1]) == {0, 1} and (np.diff(row) >= 0).all()


def test_windows_without_room_are_refused():
    task = tiny.task(sequence_length=9, max_query_length=6, impossible_questions=False)
    examples = task.read({"question": ["Where was Anna born in Paris?"], "context": ["Paris."]}, labelled=False)
    with pytest.raises(ConfigError, match="leaves no room for a context beside a question of 6 tokens and 3 special"):
        task.sequences(examples)
