"""Files of edge probes: a text with one span or two, and the labels of what lies between them."""

import dataclasses
import itertools

from bert_tf.probing.rows import json_files
from bert_tf.tasks.rows.values import BadRow, filled_text


@dataclasses.dataclass(frozen=True)
class SpanExample:
    """A text with spans and their labels.

    Attributes:
        text: str.
        spans: tuple of (start, end), characters of the text: one span, such as an entity, or two, such as a verb and
            its object.
        labels: tuple of str, all that are true of the spans.

    Example:
        SpanExample("a good film", ((2, 6), (7, 11)), ("amod",))
    """

    text: str
    spans: tuple
    labels: tuple


def read_spans(path, most=None):
    """Reads a file of JSON lines, each with `text` or `words`, `spans` and `label`.

    Spans are [start, end) in characters of `text`, or in words of `words`; all lines have the same number of them, one
    or two. `label` is a text, or a list of texts where several are true.

    Args:
        path: the file.
        most: the first so many lines; None for all.

    Returns:
        list of `SpanExample`.

    Raises:
        DataError: a line of another form, or a span outside its text; with its number.

    Example:
        Path("a.jsonl").write_text('{"words": ["a", "good", "film"], "spans": [[1, 2], [2, 3]], "label": "amod"}')
        read_spans("a.jsonl")[0].spans  # ((2, 6), (7, 11))
    """
    counts = []

    def read(row, name):
        example = _example(row)
        counts.append(len(example.spans))
        if counts[-1] != counts[0]:
            raise BadRow(f"{counts[-1]} spans where the first line has {counts[0]}; correct the row")
        return example

    return [example for _, rows in json_files(path, read=read) for example in rows[:most]]


def _example(row):
    if ("text" in row) == ("words" in row):
        raise BadRow("there must be 'text' or 'words', and not both")
    spans, labels = row.get("spans"), row.get("label")
    labels = [labels] if isinstance(labels, str) else labels
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise BadRow("'label' must be a text, or a list of texts")
    if "words" in row:
        words = row["words"]
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise BadRow("'words' must be a list of texts, none empty")
        ends = list(itertools.accumulate(len(word) + 1 for word in words))
        text, begins, size = " ".join(words), [0, *ends], len(words)
    else:
        text = filled_text(row, "text")
        size, begins, ends = len(text), range(len(text)), range(2, len(text) + 2)
    is_list = isinstance(spans, list) and all(isinstance(span, list) and len(span) == 2 for span in spans)
    if not is_list or not 1 <= len(spans) <= 2 or not all(_is_within(*span, size) for span in spans):
        raise BadRow(f"'spans' must be one or two lists [start, end), within 0 and {size}")
    return SpanExample(text, tuple((begins[start], ends[end - 1] - 1) for start, end in spans), tuple(labels))


def _is_within(start, end, size):
    return type(start) is type(end) is int and 0 <= start < end <= size
