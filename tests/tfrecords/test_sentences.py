"""Sentence splitting: a table of what ends a sentence and what does not."""

import json
import re
import time
from pathlib import Path

import pytest

import bert_tf
from tfrecords.corpus.sentences import document_sentences, split_sentences

# "|" marks where a sentence ends.
TABLE = [
    "One ends here.| Another begins.", "Mr. Smith met Dr. Jones.| They spoke.",
    "He lives in the U.S. Senate building.", "He lives in the U.S.| The senate met.",
    "J. R. R. Tolkien wrote it.| George W. Bush did not.",
    "It costs 3.50 dollars, i.e. too much.| See example.org for more.", "It rose by .5 per cent.| Then it fell.",
    "The war of 1812.| It was long.", "1. Buy bread.| 2. Buy milk.", "See No. 5 and Fig. 3 of the paper.| Yes.",
    "He said no.| Then he left.", "Smith & Co. Ltd. of London.| They sold it.", 'Really?!| Yes!| "No," she said.',
    '"Who goes there?" he asked.', 'He said "stop."| She did.', "(It was late.)| We left.",
    "It was [sic] late (very.)| (We left.)", "He came at 5 p.m.| It was dark.", "Well... maybe.| Wait...| Who?",
    "It works by e.g. Magic.", "So do I.| The end.", "It ended in Jan. 1865 at last.| Peace!", "¿Qué pasa?| ¡Nada!",
    "他来了。|我走了！|“好吗？”|是。", "「はい。」と言った。|終わり。", "그는 갔다.| 나는 왔다.| 정말?| 네.", "वह गया।| मैं आया।", "هل جئت؟| نعم.",
    "یہ کتاب ہے۔| وہ قلم ہے۔",
]  # fmt: skip


@pytest.mark.parametrize("marked", TABLE)
def test_table(marked):
    expected = [part.strip() for part in marked.split("|")]
    assert split_sentences(marked.replace("|", "")) == expected


def test_nothing_but_white_space_is_lost():
    paths = sorted((Path(bert_tf.__file__).parent / "samples").glob("*.jsonl"))
    texts = [json.loads(line)["text"] for path in paths for line in open(path, encoding="utf-8")]
    text = "\n".join(t for t in texts if len(t) > 2000)[:500_000]
    assert len(text) > 100_000
    sentences = split_sentences(text)
    assert re.sub(r"\s", "", "".join(sentences)) == re.sub(r"\s", "", text)
    assert all(s == s.strip() and s for s in sentences)
    words = [len(s.split()) for s in sentences]
    assert 15 < sum(words) / len(words) < 45  # speeches of two centuries: some 28 words
    assert max(words) < 800


def test_lines_are_sentences_unless_they_are_paragraphs():
    lines = "one sentence. with two stops\n\n  another \n"
    assert document_sentences(lines, "lines") == ["one sentence. with two stops", "another"]
    lines = "A short one. Then another.\nAnd a third. Last."
    assert document_sentences(lines, "auto") == ["A short one. Then another.", "And a third. Last."]
    assert document_sentences("A short one. Then another.", "auto") == ["A short one.", "Then another."]
    paragraph = "This is a sentence of a paragraph. " * 8
    assert len(document_sentences(f"{paragraph}\n{paragraph}", "auto")) == 16
    assert len(document_sentences(f"{paragraph}\n{paragraph}", "lines")) == 2


def test_wrapped_lines_are_joined_and_nothing_is_no_sentence():
    text = "This sentence was wrapped\nat a width. The next\nas well.\nA new line. End"
    assert split_sentences(text) == ["This sentence was wrapped at a width.", "The next as well.", "A new line.", "End"]
    assert document_sentences("", "auto") == document_sentences(" \n ", "split") == []
    assert split_sentences("...") == ["..."]


def test_time_grows_linearly():
    """Neither stops without blanks nor a missing stop make the patterns back-track."""
    for text in ("a.", ". ", "..", "word ", "\n\n", "  "):
        start = time.process_time()
        split_sentences(text * 250_000)
        assert time.process_time() - start < 3
