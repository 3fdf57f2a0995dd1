"""Duplicate rates against a dictionary; hashes; the lines that people read."""

import math

import numpy as np
import pytest

from tfrecords.statistics import DuplicateSample, report, sentence_hashes, summarize


def rows(sentences):
    lengths = [len(s) for s in sentences]
    return np.concatenate(sentences).astype(np.int32), np.concatenate([[0], np.cumsum(lengths)])


def test_hashes_are_equal_just_for_equal_rows():
    sentences = [[1, 2, 3], [3, 2, 1], [1, 2], [3], [1, 2, 3], [0], [0, 0], [2, 2], [1, 3], [3]]
    hashes = sentence_hashes(*rows(sentences))
    for i, first in enumerate(sentences):
        for j, second in enumerate(sentences):
            assert (hashes[i] == hashes[j]) == (first == second)
    assert sentence_hashes(np.zeros(0, np.int32), np.array([0])).shape == (0,)


def test_hashes_of_many_rows_do_not_collide_and_are_uniform():
    pairs = np.stack(np.meshgrid(np.arange(400), np.arange(400)), -1).reshape(-1, 2)
    hashes = sentence_hashes(pairs.ravel(), np.arange(0, pairs.size + 1, 2))
    assert len(np.unique(hashes)) == len(pairs)
    below = (hashes < np.uint64(1 << 62)).sum()
    assert abs(below - len(pairs) / 4) < 3 * math.sqrt(len(pairs) * 3 / 16)


def test_exact_while_it_fits():
    sample = DuplicateSample(np.array([5, 7, 5, 5, 9], np.uint64), size=3)
    assert sample.exact and sample.rate == pytest.approx(2 / 5)
    assert DuplicateSample().rate == 0.0


def test_merging_in_any_order_gives_the_sample_of_the_whole():
    rng = np.random.default_rng(1)
    hashes = rng.integers(0, 1 << 64, 5000, np.uint64)[rng.integers(0, 5000, 20_000)]
    whole = DuplicateSample(hashes, size=256)
    parts = [DuplicateSample(part, size=256) for part in np.array_split(hashes, 13)]
    for order in (range(13), reversed(range(13)), rng.permutation(13)):
        merged = DuplicateSample(size=256)
        for i in order:
            # A part that is cut at the threshold reached so far loses nothing.
            merged = merged.merge(DuplicateSample(parts[i].hashes, merged.threshold, 256, parts[i].counts))
        assert merged.threshold == whole.threshold < 1 << 64
        assert np.array_equal(merged.hashes, whole.hashes) and np.array_equal(merged.counts, whole.counts)
    assert 64 <= len(whole.hashes) <= 256


def test_the_sample_estimates_the_rate():
    rng = np.random.default_rng(2)
    distinct = rng.integers(0, 1 << 64, 40_000, np.uint64)
    hashes = np.concatenate([distinct, distinct[:20_000]])  # a third are repeats
    sample = DuplicateSample(hashes, size=2048)
    assert not sample.exact and 1024 < len(sample.hashes) <= 2048
    # Repeats among n sampled distinct ones: binomial; the rate is their share of all occurrences.
    deviation = math.sqrt(0.25 / len(sample.hashes)) / 1.5**2
    assert abs(sample.rate - 1 / 3) < 3 * deviation


def counts(**changes):
    return {
        "documents": 10, "sentences": 100, "tokens": 2000, "packed_tokens": 2000, "unknown_tokens": 20, "examples": 20,
        "example_tokens": 2060, "truncated_tokens": 100, "replaced_characters": 0, "random_next": 10, "without_pair": 0,
    } | changes  # fmt: skip


def test_summary_and_report():
    summary = summarize(counts(), DuplicateSample(np.arange(100, dtype=np.uint64)))
    assert summary["unknown_rate"] == 0.01 and summary["tokens_per_sentence"] == 20.0
    assert summary["tokens_per_example"] == 103.0 and summary["duplicate_sentence_rate"] == 0.0
    lines = report(summary, 128)
    assert "10 documents, 100 sentences, 2,000 tokens (20.0 a sentence)" in lines[0]
    assert "unknown tokens 1.00 %" in lines[2] and "truncation 5.0 %" in lines[2]
    assert not any(line.startswith("warning") for line in lines)


def test_warnings():
    duplicates = DuplicateSample(np.arange(100, dtype=np.uint64) % 50)
    lines = report(summarize(counts(unknown_tokens=200, replaced_characters=3), duplicates), 128)
    warnings = [line for line in lines if line.startswith("warning")]
    assert len(warnings) == 2 and "50 % of the sentences" in warnings[0] and "10.0 % of the tokens" in warnings[1]
    assert any("U+FFFD: 3 pieces of text" in line for line in lines)


@pytest.mark.parametrize(
    "kinds, line",
    [
        (
            {"next": 8, "random_next": 12, "random_next_ends": 4, "random_next_fills": 1, "two_segments": 20},
            "pairs: 8 next (40.0 %), 12 random (60.0 %): 7 drawn, 4 because no text follows A, 1 because A has the full length",
        ),
        (
            {"in_order": 9, "exchanged": 8, "random_next": 0, "two_segments": 17, "lone_segments": 3},
            "pairs: 9 in order (45.0 %), 8 exchanged (40.0 %); 3 with one segment (15.0 %)",
        ),
        (
            {"random_next": 0, "two_segments": 18, "lone_segments": 2},
            "pairs: 18 without a question about them (90.0 %); 2 with one segment (10.0 %)",
        ),
        ({"random_next": 0, "two_segments": 0, "lone_segments": 0}, None),
        ({}, None),  # of a manifest from before they were counted
    ],
)
def test_pairs_are_reported_by_kind(kinds, line):
    zeros = dict.fromkeys(("next", "random_next_ends", "random_next_fills", "in_order", "exchanged", "lone_segments"), 0) if kinds else {}
    lines = report(summarize(counts(**zeros | kinds), DuplicateSample()), 128)
    assert [each for each in lines if each.startswith("pairs")] == ([line] if line else [])


@pytest.mark.parametrize(
    "changes, warning",
    [
        (
            {"random_next": 16, "random_next_ends": 13, "documents": 70},
            "80 % of the pairs are random, 65 % because no text follows A in its document: the documents have 1.4 sentences",
        ),
        ({"truncated_tokens": 900}, "45 % of the tokens are cut off, since sentences are long for the sequence (20 tokens"),
        (
            {"documents": 6, "sentences": 149_995},
            "the corpus is 6 documents of 24,999 sentences on average: in a .txt file only a blank line ends a document; "
            "where each line is one (a review, a post), pass --one-document-a-line",
        ),
        ({"documents": 1, "sentences": 1001}, "the corpus is 1 document of 1,001 sentences: in a .txt file"),
        ({"documents": 1, "sentences": 1000}, None),
        ({"random_next": 15}, None),
        ({"truncated_tokens": 600}, None),
    ],
)
def test_warnings_of_documents_and_pairs(changes, warning):
    lines = report(summarize(counts(**changes), DuplicateSample()), 128)
    found = [line for line in lines if line.startswith("warning")]
    assert len(found) == (warning is not None) and all(warning in line for line in found)


def test_one_of_a_kind():
    lines = report(summarize(counts(documents=1, sentences=1, examples=1, random_next=0), DuplicateSample()), 4096)
    assert lines[0].startswith("1 document, 1 sentence, 2,000 tokens") and lines[1].startswith("1 example of")
