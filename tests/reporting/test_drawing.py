"""Marks, ticks and lines, compared with what they must be."""

import itertools

import numpy as np
import pytest

from bert_tf.markup import h, render
from bert_tf.reporting.axes import tick_text, ticks, whole_ticks
from bert_tf.reporting.charts import apart, running_mean, thin, window
from bert_tf.reporting.examples import mark_text
from bert_tf.table import number_text


def test_marks_may_overlap_and_the_text_stays_what_it_is():
    text = "Anna Smith met <Bert>"
    marks = [[0, 10, "missed", "PER"], [5, 10, "wrong", "LOC"], [15, 99, "right", "PER"]]
    html = render(h("p", mark_text(text, marks)))
    assert html == (
        '<p><mark class="missed"><span class="kind missed">PER</span>Anna </mark>'
        '<mark class="missed wrong"><span class="kind wrong">LOC</span>Smith</mark> met '
        '<mark class="right"><span class="kind right">PER</span>&lt;Bert&gt;</mark></p>'
    )


def test_ticks_of_any_range_are_few_and_round():
    random = np.random.default_rng(0)
    for _ in range(300):
        low = random.normal() * 10.0 ** random.integers(-6, 7)
        high = low + 10.0 ** random.uniform(-6, 7)
        if high - low < abs(low) * 1e-9:
            continue
        found = ticks(low, high)
        step = found[1] - found[0]
        assert found[0] <= low + step * 1e-6 and found[-1] >= high - step * 1e-6 and 3 <= len(found) <= 9
        texts = [tick_text(value) for value in found]
        if step > 1e-6 * max(abs(low), abs(high)) and max(abs(low), abs(high)) < 10_000:
            assert len(set(texts)) == len(texts), texts
    assert whole_ticks(1, 3) == [1, 2, 3] and whole_ticks(10, 1500) == [500, 1000, 1500] and whole_ticks(4, 4) == [4]


def test_numbers_as_text():
    assert [*map(tick_text, (0.2, 3 * 0.1, 20_000, 2e-5, -3.0, 1500))] == ["0.2", "0.3", "20k", "2e-05", "-3", "1500"]
    assert [number_text(v) for v in (12345, 0.81239, 2e-5, 0.0, 16679.25, True)] == [
        "12,345", "0.8124", "2e-05", "0", "16,679.2", "True",
    ]  # fmt: skip


def test_lines_keep_their_extremes_and_ends():
    points = [(i, float(np.sin(i / 50))) for i in range(10_000)]
    points[5_000] = (5_000, 40.0)
    kept = thin(points)
    assert len(kept) <= 525 and set(kept) <= set(points) and {points[0], points[-1], points[5_000]} <= set(kept)
    assert thin(points[:100]) == points[:100]


def test_the_running_mean_is_a_mean():
    points = [(i, float(i * i % 17)) for i in range(200)]
    half = window(200) // 2
    for i, (x, y) in enumerate(running_mean(points)):
        assert x == i and y == pytest.approx(np.mean([v for _, v in points[max(0, i - half) : i + half + 1]]))


def test_labels_at_the_ends_do_not_overlap():
    placed = apart([10, 11, 12, 100, 199, 199], 13, 0, 200)
    assert all(b - a >= 13 - 1e-9 for a, b in itertools.pairwise(placed)) and placed[0] >= 0 and placed[-1] <= 200
    assert placed[0] == 10 and abs(placed[3] - 100) < 1e-9


def test_forbidden_characters_become_replacement_characters():
    assert render(h("p", "a\x00b\ud800c\ud83d\ude00", title='"<&>\x1b')) == (
        '<p title="&quot;<&amp;&gt;\ufffd">a\ufffdb\ufffdc\ufffd\ufffd</p>'
    )
