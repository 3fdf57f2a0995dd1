"""Recognizes the format of a labelled file by what it holds."""

import csv
import itertools
import re

from bert_tf.tasks.rows.columns_config import LABEL_NAMES, PAIR_NAMES, TEXT_NAMES

#: Bytes at the beginning of a file that are looked at.
SAMPLE_BYTES = 1 << 18

_JSON = re.compile(r'\s*(\[\s*\{|\{\s*["}])')
_ENTITY_TAG = re.compile(r"O|[BIESLU]-\S+")


def sniff(text):
    """The format of the beginning of a file.

    Returns:
        "parquet", "jsonl" (also for an array of objects), "conll", "tsv" (nearly all lines have the same number of
        tabs), "csv" (the first line names a usual column), or None.

    Example:
        sniff("text\\tlabel\\ngood\\t1\\n")  # 'tsv'
    """
    if text.startswith("PAR1"):
        return "parquet"
    if _JSON.match(text):
        return "jsonl"
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    filled = [line for line in lines if line.strip("\ufeff").strip()]
    if len(filled) < 2:
        return None
    if _is_conll(lines):
        return "conll"
    tabs = filled[0].count("\t")
    if tabs and sum(line.count("\t") == tabs for line in filled) >= 0.9 * len(filled):
        return "tsv"
    return "csv" if _is_csv(lines) else None


def fields_of(line):
    """The columns of a line of CoNLL: between tabs, if it holds one, else between spaces. Other white space is of words."""
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def _is_conll(lines):
    """Whether they are words with tags: several sentences with empty lines between, or the ten columns of CoNLL-U."""
    rows, sentences, begins = [], 0, True
    for line in lines:
        if not line.strip("\ufeff").strip() or line.startswith("-DOCSTART-"):
            begins = True
        elif not line.startswith("# "):
            rows.append(fields_of(line))
            sentences, begins = sentences + begins, False
    if not rows or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    if len(rows[0]) == 10 and re.fullmatch(r"\d+([-.]\d+)?", rows[0][0]):
        return True
    with_spaces = sum(any(" " in field for field in row) for row in rows)
    if sentences < 2 or with_spaces > 0.1 * len(rows):
        return False
    tags = {row[-1] for row in rows}
    return all(_ENTITY_TAG.fullmatch(tag) for tag in tags) or 2 * len(tags) <= len(rows)


def _is_csv(lines):
    try:
        header, *rows = itertools.islice(csv.reader(lines), 50)
    except (csv.Error, ValueError):
        return False
    rows = [row for row in rows if row][:-1] or [row for row in rows if row]  # the last may be cut off
    names = {name.strip().lower() for name in header}
    usual = len(header) > 1 and not names.isdisjoint((*TEXT_NAMES, *PAIR_NAMES, *LABEL_NAMES))
    return usual and sum(len(row) == len(header) for row in rows) >= 0.9 * len(rows)
