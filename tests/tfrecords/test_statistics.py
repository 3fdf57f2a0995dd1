"""Repeated sentences; the lines that people read."""

import numpy as np
import pytest

from tfrecords.corpus.tokens import repeated_sentences
from tfrecords.shards.statistics import report, summarize


def test_repeats_are_equal_sentences():
    sentences = [[1, 2, 3], [3, 2, 1], [1, 2], [3], [1, 2, 3], [0], [0, 0], [2, 2], [1, 3], [3], [3], [513, 2]]
    splits = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    assert repeated_sentences(np.concatenate(sentences).astype(np.int32), splits) == 3
    assert repeated_sentences(np.zeros(0, np.int32), np.array([0])) == 0


def counts(**changes):
    return {
        "documents": 10, "sentences": 100, "tokens": 2000, "packed_tokens": 2000, "unknown_tokens": 20, "examples": 20,
        "example_tokens": 2060, "truncated_tokens": 100, "replaced_characters": 0, "random_next": 10, "without_pair": 0,
        "repeated_sentences": 0,
    } | changes  # fmt: skip


def test_summary_and_report():
    summary = summarize(counts())
    assert summary["unknown_rate"] == 0.01 and summary["tokens_per_sentence"] == 20.0
    assert summary["tokens_per_example"] == 103.0 and summary["duplicate_sentence_rate"] == 0.0
    lines = report(summary, 128)
    assert "10 documents, 100 sentences, 2,000 tokens (20.0 a sentence)" in lines[0]
    assert "unknown tokens 1.00 %" in lines[2] and "truncation 5.0 %" in lines[2]
    assert not any(line.startswith("warning") for line in lines)


def test_warnings():
    lines = report(summarize(counts(unknown_tokens=200, replaced_characters=3, repeated_sentences=50)), 128)
    warnings = [line for line in lines if line.startswith("warning")]
    assert len(warnings) == 2 and "50 % of the sentences" in warnings[0] and "10.0 % of the tokens" in warnings[1]
    assert any("U+FFFD: 3 pieces of text" in line for line in lines)


@pytest.mark.parametrize("kinds, line", [
    ({"next": 8, "random_next": 12, "random_next_ends": 4, "random_next_fills": 1, "two_segments": 20},
     "pairs: 8 next (40.0 %), 12 random (60.0 %): 7 drawn, 4 because no text follows A, 1 because A has the full length"),
    ({"in_order": 9, "exchanged": 8, "random_next": 0, "two_segments": 17, "lone_segments": 3},
     "pairs: 9 in order (45.0 %), 8 exchanged (40.0 %); 3 with one segment (15.0 %)"),
    ({"random_next": 0, "two_segments": 18, "lone_segments": 2}, "pairs: 18 without a label (90.0 %); 2 with one"),
    ({"random_next": 0, "two_segments": 0, "lone_segments": 0}, None),
    ({}, None),  # of a manifest from before they were counted
])  # fmt: skip
def test_pairs_are_reported_by_kind(kinds, line):
    names = "next", "random_next_ends", "random_next_fills", "in_order", "exchanged", "lone_segments"
    zeros = dict.fromkeys(names, 0) if kinds else {}
    lines = report(summarize(counts(**zeros | kinds)), 128)
    found = [each for each in lines if each.startswith("pairs")]
    assert len(found) == (line is not None) and all(each.startswith(line) for each in found)


@pytest.mark.parametrize("changes, warning", [
    ({"random_next": 16, "random_next_ends": 13, "documents": 70},
     "80 % of the pairs are random, 65 % because no text follows A in its document: the documents have 1.4 sentences"),
    ({"truncated_tokens": 900}, "45 % of the tokens are cut off, since sentences are long for the sequence (20 to"),
    ({"documents": 6, "sentences": 149_995},
     "the corpus is 6 documents of 24,999 sentences on average: in a .txt file only a blank line ends a document; "
     "where each line is one (a review, a post), set one_document_a_line=true"),
    ({"documents": 1, "sentences": 1001}, "the corpus is 1 document of 1,001 sentences: in a .txt file"),
    ({"documents": 1, "sentences": 1000}, None),
    ({"random_next": 15}, None),
    ({"truncated_tokens": 600}, None),
])  # fmt: skip
def test_warnings_of_documents_and_pairs(changes, warning):
    lines = report(summarize(counts(**changes)), 128)
    found = [line for line in lines if line.startswith("warning")]
    assert len(found) == (warning is not None) and all(warning in line for line in found)


def test_one_of_a_kind():
    lines = report(summarize(counts(documents=1, sentences=1, examples=1, random_next=0)), 4096)
    assert lines[0].startswith("1 document, 1 sentence, 2,000 tokens") and lines[1].startswith("1 example of")
