"""From spans of windows to answers: what a loop over all spans of each question finds, in its order of ties."""

import numpy as np
import pytest
import tiny_questions as tiny

from bert_tf.tasks.spans.decoding import find_answers
from bert_tf.tasks.spans.window_sequences import encode_questions

WORDS = "anna was born in paris . naïve 漢 film".split()
LENGTH, K = 24, 12


def proposed(sequences, seed):
    """Spans of random windows with many equal scores, some of them impossible."""
    random, size = np.random.default_rng(seed), (len(sequences.lengths), K)
    scores = random.integers(-3, 4, size).astype(np.float32) / 8
    scores[random.random(size) < 0.3] = -1e9
    tokens = sequences.windows.lengths.numpy()[:, None]
    first = random.integers(0, np.maximum(tokens, 1), size)
    last = np.minimum(first + random.integers(0, 3, size), np.maximum(tokens - 1, 0))
    positions = [(x + sequences.offsets[:, None]).astype(np.int32) for x in (first, last)]
    nulls = random.normal(size=len(scores)).astype(np.float32)
    names = ("scores", "starts", "ends", "null_scores")
    return [dict(zip(names, row)) for row in zip(scores, *positions, nulls)]


def expected(sequences, outputs, contexts, n_best):
    """For each question [(text, start, end, score)], by a loop over its spans."""
    answers = []
    for question, context in enumerate(contexts):
        spans = []
        for window in np.flatnonzero(sequences.windows.owners == question):
            low = sequences.places[window] - sequences.offsets[window]
            for score, start, end in zip(*(outputs[window][name] for name in ("scores", "starts", "ends"))):
                if score > -1e8 and len(sequences.starts):
                    begin, stop = int(sequences.starts[low + start]), int(sequences.ends[low + end])
                    spans.append((context[begin:stop], begin, stop, float(score)))
        best = {}
        for span in sorted(spans, key=lambda span: -span[3]):
            best.setdefault(span[0], span)
        answers.append(list(best.values())[:n_best])
    return answers


@pytest.mark.parametrize("n_best, null_alone", [(1, True), (4, False), (30, True)])
def test_answers_are_those_of_a_loop_over_all_spans(n_best, null_alone, monkeypatch):
    monkeypatch.setattr("bert_tf.tasks.spans.decoding._TOGETHER", 7)
    random = np.random.default_rng(n_best)
    contexts = [" ".join(random.choice(WORDS[: 1 + i % 9], 1 + 3 * i)) for i in range(20)] + ["\u0007", "anna " * 60]
    data = [{"question": "Who?", "context": context} for context in contexts]
    examples = tiny.task().read(data, labelled=False)
    sequences = encode_questions(tiny.tokenizer(), examples, LENGTH, 6, 5)
    outputs = proposed(sequences, n_best)
    nulls = np.array([output["null_scores"] for output in outputs], np.float64)
    found = find_answers(sequences, outputs, contexts, n_best, null_alone, threshold := nulls.mean())
    for question, (one, best) in enumerate(zip(found, expected(sequences, outputs, contexts, n_best), strict=True)):
        assert list(zip(one.texts, one.starts, one.ends, one.scores)) == best
        assert one.null_score == nulls[sequences.windows.owners == question].min()
        odds = one.null_score - (0 if null_alone or not best else best[0][3]) if best else 1e9
        assert (one.null_odds, one.answered) == (odds, odds <= threshold)
    assert {one.answered for one in found} == {True, False}
