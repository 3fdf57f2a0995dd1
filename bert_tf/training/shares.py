"""Labelled data as parts of a file, of which a share can be left out of the training."""

import dataclasses
import json
import os
import re
from pathlib import Path

import numpy as np
from absl import logging

from bert_tf.errors import ConfigError, DataError
from bert_tf.hub import local_file
from bert_tf.parsing import brief, json_line
from bert_tf.tasks.rows.columns_config import LABEL_NAMES, TableColumns
from bert_tf.tasks.rows.files import file_format, read_text
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.rows.table import read_each
from bert_tf.training.run_data import DATA, is_made_for_run


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a file: the text is `head`, the parts with `between` between them, and `tail`.

    Attributes:
        parts: the text of each.
        what: what a part is, for messages.
        ending: of the file.
        labels: the label of each, where each has one.
        places: where each stands in what was given: in words, or the number of each of its lines in the file `path`.
    """

    parts: list[str]
    what: str = "row"
    ending: str = ".jsonl"
    head: str = ""
    between: str = "\n"
    tail: str = "\n"
    labels: list | None = None
    places: list | None = None
    path: str = ""

    def place(self, line):
        """Where a line of the file of these parts stands in what they are of, in words; None if that is not known."""
        first = 1 + self.head.count("\n")
        for part, place in zip(self.parts, self.places or ()):
            lines = (part + self.between).count("\n")
            if first <= line < first + lines:
                return place if isinstance(place, str) else f"{self.path}, line {place[line - first]}"
            first += lines
        return None

    def text(self):
        """The content of the file."""
        return self.head + self.between.join(self.parts) + self.tail if self.parts else ""

    def divided(self, share, seed):
        """(the parts to train on, those of the share), each in their order.

        The share is drawn at random; where each part has a label, each label has about its share.

        Raises:
            ConfigError: a share that leaves nothing to one of them.
        """
        total = len(self.parts)
        count = round(share * total)
        if not 0 < share < 1 or not 0 < count < total:
            raise ConfigError(
                f"dev={share} of {total} {self.what}s is {max(count, 0)}; give a share that leaves a {self.what} to both, or "
                "data for dev"
            )
        order = np.random.default_rng(seed).permutation(total)
        if self.labels is not None:
            order = sorted(order, key=lambda i: str(self.labels[i]))
        chosen = {order[int((number + 0.5) * total / count)] for number in range(count)}

        def of(values, is_dev):
            return values and [value for i, value in enumerate(values) if (i in chosen) == is_dev]

        return tuple(
            dataclasses.replace(self, parts=of(self.parts, is_dev), places=of(self.places, is_dev))
            for is_dev in (False, True)
        )


def warn_of_seen(dev, teacher):
    """Logs a warning where the teacher was trained on examples of dev; both are what `bert_tf.finetune` and `distill` wrote."""
    files = Path(dev), Path(teacher) / DATA / "train.jsonl"
    if not all(path.is_file() and is_made_for_run(path.parent) for path in files):
        return
    lines, trained_on = (set(path.read_text(encoding="utf-8").split("\n")) - {""} for path in files)
    seen = lines & trained_on
    if seen:
        logging.warning(
            "%d of %d examples of dev are among those that %s was trained on, so that it answers them too well; give the "
            "share of its training, dev, or other data",
            len(seen),
            len(lines),
            teacher,
        )


def parts_of(data, columns, split, tagged=False):
    """The `Parts` of labelled data.

    A CoNLL file is divided at its documents, or where it marks none at its sentences; SQuAD at its articles, so that no
    paragraph is in both; MRQA at its paragraphs; all else is rows.

    Args:
        data: a file, or Python objects, as of `open_table`.
        columns: the settings `data.columns`, a dict.
        split: the name of the data, for messages.
        tagged: of `file_format`.
    """
    if isinstance(data, (str, os.PathLike)):
        path = str(local_file(data))
        if file_format(path, columns.get("format"), tagged) == "conll":
            return _conll(path)
    table = open_table(data, TableColumns(format=columns.get("format"), quoted=columns.get("quoted")))
    if table.format == "lines":
        raise DataError(f"{table.path} holds texts without labels; give a file with labels")
    read = read_each(table, lambda row: [table.as_dict(row)], bool(columns.get("skip_malformed", False)))
    rows = read.items
    if read.bad:
        logging.warning("%s: %d malformed rows are left out", table.path, read.bad)
    if table.is_file and len(rows) == 1 and isinstance(rows[0].get("data"), list):
        head = {key: value for key, value in rows[0].items() if key != "data"}
        head = json.dumps(head, ensure_ascii=False)[:-1] + (", " if head else "")
        articles = [json.dumps(article, ensure_ascii=False) for article in rows[0]["data"]]
        return Parts(articles, "article", ".json", f'{head}"data": [\n', ",\n", "\n]}\n")
    lines = [_line(row, split, number) for number, row in enumerate(rows)]
    if table.is_file and "header" in rows[0]:
        return Parts(lines[1:], "paragraph", head=f"{lines[0]}\n")
    names = {str(name).lower(): name for name in rows[0]}
    usual = next((names[name] for name in LABEL_NAMES if name in names), None)
    name = columns.get("label", usual)
    if isinstance(name, (list, tuple)):  # a column of 1 and 0 for each label
        labels = [" ".join(str(row.get(column)) for column in name) for row in rows]
    else:
        labels = [row.get(name) for row in rows]
    is_label = all(isinstance(label, (str, int, float)) for label in labels)
    places = [f"{table.path if table.is_file else split}, {table.unit} {number}" for number in read.numbers]
    return Parts(lines, labels=labels if is_label else None, places=places)


def _conll(path):
    text = read_text(path)
    blocks = re.split(r"\n[ \t\r]*(?=\n)", text.strip("\n"))
    number, numbers = 1 + len(text) - len(text.lstrip("\n")), []
    for block in blocks:
        numbers.append(number + len(block) - len(block.lstrip("\r\n")))
        number += block.count("\n") + 1
    blocks = [block.strip("\r\n") for block in blocks]
    begins = [block.startswith("-DOCSTART-") or "# newdoc" in block for block in blocks]
    documents: list[str] = []
    places: list[list[int]] = []
    for block, is_begin, number in zip(blocks, begins, numbers):
        lines = list(range(number, number + block.count("\n") + 2))  # with the empty one behind it
        if is_begin or not any(begins) or not documents:
            documents.append(block)
            places.append(lines)
        else:
            documents[-1] += f"\n\n{block}"
            places[-1] += lines
    what = "document" if any(begins) else "sentence"
    return Parts(documents, what, Path(path).suffix, between="\n\n", tail="\n\n", places=places, path=path)


def _line(row, split, number):
    """A row as a line of JSON."""
    row = {str(key): value for key, value in row.items()}
    try:
        return json_line(row, default=_plain)
    except TypeError as error:
        raise DataError(f"{split}, example {number}: {error}; give texts, numbers and lists of them") from None


def _plain(value):
    """A value of NumPy, or a set, as JSON holds it."""
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{brief(value)} cannot be written as JSON")
