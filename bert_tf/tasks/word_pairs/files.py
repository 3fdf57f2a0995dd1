"""Files of WiC and WSC: texts with two marked words. No TensorFlow is imported."""

import dataclasses
import re

from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.tables.files import read_objects

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


def read_word_pairs(path, columns, labelled):
    """`Examples` of a file of WiC or WSC, as JSON or Parquet. `details` has a pair of `Mark` for each.

    Raises:
        DataError: a row that lacks a text, a mark or a label, or whose marks are not in its texts; with file and line.
    """

    def read(row, where):
        return [(read_row(row, where, labelled), {"id": row["idx"]} if "idx" in row else {})]

    found, about = read_objects(path, columns, "word_pair reads the .jsonl files of WiC and WSC", read)
    if not found:
        raise DataError(f"{path} holds no marked words; it must hold one row at least")
    rows, ids = (list(column) for column in zip(*found))
    return dataclasses.replace(examples_of(rows, labelled, str(path)), ids=ids, **about)


def examples_of(rows, labelled, where="the inputs"):
    """`Examples` of what `read_row` returns for each row.

    Raises:
        DataError: single texts and pairs together.
    """
    texts, pairs, marks, labels = (list(column) for column in zip(*rows)) if rows else ([], [], [], [])
    if len({pair is None for pair in pairs}) > 1:
        raise DataError(f"{where}: some rows have one text and some have two; put them into two files")
    return Examples(
        texts=texts,
        text_pairs=pairs if pairs and pairs[0] is not None else None,
        labels=labels if labelled else None,
        details=marks,
    )


def row_of(given, where):
    """What `read_row` returns for an input of `predict`: a dict, or a JSON object as str."""
    if isinstance(given, str):
        given = parse_json(given, f"{where}, which must be a JSON object with the keys of WiC or WSC,")
    if not isinstance(given, dict):
        raise DataError(f"{where} must be a dict with the keys of WiC or WSC, got {brief(given)}")
    return read_row(given, where, labelled=False)


def read_row(row, where, labelled):
    """(first text, second text or None, pair of `Mark`, label or None) of a row of WiC or WSC.

    WiC (version 1.1) has "sentence1", "start1", "end1", "sentence2", "start2" and "end2", which count characters. WSC
    has "text" and "target" with "span1_text", "span1_index", "span2_text" and "span2_index", which count words between
    white space. In some rows of the published file of WSC the words at that place are not the text: the next place is
    tried, as T5 does; if the text is not there either, the words at the place are marked, as in jiant.

    Raises:
        DataError: names `where`.
    """
    if "sentence1" in row:
        texts = [_text(row, f"sentence{n}", where) for n in (1, 2)]
        marks = tuple(Mark(n, *_characters(texts[n], row, f"start{n + 1}", f"end{n + 1}", where)) for n in range(2))
    else:
        texts = [_text(row, "text", where), None]
        # The files of Hugging Face's datasets hold the four keys in the row itself.
        target = row.get("target") if isinstance(row.get("target"), dict) else row
        marks = tuple(Mark(0, *_words(texts[0], target, f"span{n}", where)) for n in (1, 2))
    return *texts, marks, _label(row, where) if labelled else None


def _text(row, key, where):
    text = row.get(key)
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: '{key}' is {brief(text)}; it must be a text, correct the row")
    return text


def _number(row, key, where):
    number = row.get(key)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise DataError(f"{where}: '{key}' is {brief(number)}; it must be a whole number from 0, correct the row")
    return number


def _characters(text, row, first, last, where):
    if first not in row:
        raise DataError(f"{where}: there is no '{first}', which version 1.1 of WiC has; take that version")
    start, end = _number(row, first, where), _number(row, last, where)
    if not start < end <= len(text) or not text[start:end].strip():
        raise DataError(
            f"{where}: '{first}' and '{last}' are {start} and {end}, which mark no word of {brief(text)}; correct the row"
        )
    return start, end


def _words(text, target, name, where):
    span, index = _text(target, f"{name}_text", where), _number(target, f"{name}_index", where)
    words = list(re.finditer(r"\S+", text))
    if index >= len(words):
        raise DataError(
            f"{where}: '{name}_index' is {index}, and the text has {len(words)} words, counted from 0; correct the row"
        )
    wanted = span.split()
    pattern = re.compile(r"\s+".join(map(re.escape, wanted)), re.IGNORECASE)
    for place in words[index : index + 2]:
        found = pattern.match(text, place.start())
        if found:
            return found.span()
    last = min(index + len(wanted), len(words)) - 1
    return words[index].start(), words[last].end()


def _label(row, where):
    label = str(row.get("label")).lower()  # JSON's true, or the text "True"
    if label not in LABELS:
        raise DataError(f"{where}: the label is {brief(row.get('label'))}; it must be true or false, correct the row")
    return label
