"""Files of WiC and WSC: texts with two marked words. No TensorFlow is imported."""

import dataclasses
import re

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.rows.values import BadRow, filled_text, whole_number

LABELS = ("false", "true")


@dataclasses.dataclass(frozen=True)
class Mark:
    """A marked word.

    Attributes:
        text: 0: it stands in the first text; 1: in the second.
        start, end: its characters [start, end).
    """

    text: int
    start: int
    end: int


def read_word_pairs(table, columns, labelled):
    """`Examples` of a table of WiC or WSC. `details` has a pair of `Mark` for each.

    Raises:
        DataError: a row that lacks a text, a mark or a label, or whose marks are not in its texts; with file and line; or
            single texts and pairs together.
    """
    examples = read_examples(table, lambda row: read_row(row, labelled), columns, labelled)
    if None in (examples.text_pairs or ()):
        raise DataError(f"{examples.path}: some rows have one text and some have two; put them into two files")
    return examples


def read_row(row, labelled):
    """The only `Example` of a row of WiC or WSC.

    WiC (version 1.1) has "sentence1", "start1", "end1", "sentence2", "start2" and "end2", which count characters. WSC
    has "text" and "target" with "span1_text", "span1_index", "span2_text" and "span2_index", which count words between
    white space. In some rows of the published file of WSC the words at that place are not the text: the next place is
    tried, as T5 does; if the text is not there either, the words at the place are marked, as in jiant.

    Raises:
        BadRow: the row lacks one of them.
    """
    if "sentence1" in row:
        texts = [filled_text(row, f"sentence{n}") for n in (1, 2)]
        marks = tuple(Mark(n, *_characters(texts[n], row, f"start{n + 1}", f"end{n + 1}")) for n in range(2))
    else:
        texts = [filled_text(row, "text"), None]
        # The files of Hugging Face's datasets hold the four keys in the row itself.
        target = row.get("target") if isinstance(row.get("target"), dict) else row
        marks = tuple(Mark(0, *_words(texts[0], target, f"span{n}")) for n in (1, 2))
    identifier = {"id": row["idx"]} if "idx" in row else None
    return [Example(*texts, label=_label(row) if labelled else None, id=identifier, details=marks)]


def _characters(text, row, first, last):
    if first not in row:
        raise BadRow(f"there is no '{first}', which version 1.1 of WiC has; take that version")
    start, end = whole_number(row, first), whole_number(row, last)
    if not start < end <= len(text) or not text[start:end].strip():
        raise BadRow(
            f"'{first}' and '{last}' are {start} and {end}, which mark no word of {brief(text)}; correct the row"
        )
    return start, end


def _words(text, target, name):
    span, index = filled_text(target, f"{name}_text"), whole_number(target, f"{name}_index")
    words = list(re.finditer(r"\S+", text))
    if index >= len(words):
        raise BadRow(f"'{name}_index' is {index}, and the text has {len(words)} words, counted from 0; correct the row")
    span_words = span.split()
    pattern = re.compile(r"\s+".join(map(re.escape, span_words)), re.IGNORECASE)
    for place in words[index : index + 2]:
        match = pattern.match(text, place.start())
        if match:
            return match.span()
    last = min(index + len(span_words), len(words)) - 1
    return words[index].start(), words[last].end()


def _label(row):
    label = str(row.get("label")).lower()  # JSON's true, or the text "True"
    if label not in LABELS:
        raise BadRow(f"the label is {brief(row.get('label'))}; it must be true or false, correct the row")
    return label
