"""Files of text to text: two columns of any table, or a data set's own files in one of T5's formats."""

import dataclasses

from bert_tf.errors import DataError
from bert_tf.tasks.config import LABEL_NAMES, TEXT_NAMES
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.glue import columns_of, test_columns
from bert_tf.tasks.tables.columns import UsualNames, read_columns, split_header
from bert_tf.tasks.tables.files import file_format, read_table
from bert_tf.tasks.text_to_text.t5_formats import TextPair, glue_row

#: The usual names of the columns.
NAMES = UsualNames(
    text=("source", "input", "inputs", "article", "document", *TEXT_NAMES),
    text_pair=(),
    label=("target", "targets", "output", "summary", "highlights", *LABEL_NAMES),
)


def read_sources(path, columns, labelled, labels=None):
    """`Examples` of a table with a source and a target column; without `labelled` of sources alone, or of plain lines.

    Raises:
        DataError: see `read_columns`; a file without columns.
    """
    return read_columns(path, _table_format(path, columns, labelled), columns, labelled, None, labels or (), NAMES)


def read_format(path, format, columns, labelled):
    """`Examples` of a data set's own file, with a `TextPair` for each in `details`.

    Args:
        path: the file.
        format: a `T5Format`.
        columns: `ColumnsConfig`; GLUE's own columns are used where it has none.
        labelled: whether every example must have a target.

    Raises:
        DataError: a row that lacks a key or a target; with file and line.
    """
    kind = _table_format(path, columns, labelled)
    if kind == "lines":
        return _converted(format, path, "line", _keyed_lines(format, path))
    if format.glue is None or kind in ("jsonl", "parquet"):
        table = read_table(path, kind, columns.quoted)
        names, rows = split_header(table, columns, None)
        if not table.keyed:
            rows = [(line, row and dict(zip(names or (), row))) for line, row in rows]
        return _converted(format, path, table.unit, rows, labelled)
    columns = columns_of(format.glue, columns)
    other = None if labelled else test_columns(format.glue, columns)
    if other and other.text in read_table(path, kind).first():
        columns = other
    read = read_columns(path, kind, columns, labelled)
    pairs, labels = read.text_pairs or [None] * len(read), read.labels or [None] * len(read)
    rows = [
        (line, {**glue_row(format.glue, *texts), **identifier})
        for line, identifier, *texts in zip(read.lines, read.ids, read.texts, pairs, labels)
    ]
    examples = _converted(format, path, read.unit, rows, labelled)
    return dataclasses.replace(examples, lacking=read.lacking, skipped=read.skipped, columns=read.columns)


def format_examples(format, inputs):
    """`Examples` without labels of a list of texts, rows and, for GLUE's formats, pairs, as `predict` takes it."""

    def row(given):
        if isinstance(given, str):
            return {format.field: given} if format.field else given
        return given if isinstance(given, dict) else glue_row(format.glue, *given)

    rows = [(index, row(given)) for index, given in enumerate(inputs)]
    return dataclasses.replace(_converted(format, "the given inputs", "input", rows), lines=None, ids=None)


def _table_format(path, columns, labelled):
    kind = file_format(path, columns.format)
    if kind == "conll" or (kind == "lines" and labelled):
        raise DataError(
            f"{path} has no columns, and text_to_text reads a source and a target column; if it is a table, name its "
            "format, e.g. --set task.columns.format=tsv"
        )
    return kind


def _keyed_lines(format, path):
    """Lines of plain text as rows of the format's only field, or as whole sources."""
    for line, row in read_table(path, "lines").rows:
        yield line, row and ({format.field: row[0]} if format.field else row[0])


def _converted(format, path, unit, rows, labelled=False):
    """`Examples` of rows: pairs (number, dict, or str for a whole source, or None for an empty line)."""
    pairs, lines, lacking = [], [], []
    for line, row in rows:
        where = f"{path}, {unit} {line}"
        if row is None:
            lacking.append({unit: line, "error": "the line is empty"})
            continue
        found = [TextPair(row, None)] if isinstance(row, str) else _convert(format, row, where)
        if labelled and any(pair.target is None for pair in found):
            raise DataError(f"{where}: the row has no label, which only predict allows; add it")
        pairs += found
        lines += [line] * len(found)
    return Examples(
        texts=[pair.source for pair in pairs],
        labels=[str(pair.target) for pair in pairs] if labelled else None,
        ids=[{} if pair.identifier is None else {"id": pair.identifier} for pair in pairs],
        path=str(path),
        lines=lines,
        unit=unit,
        lacking=lacking,
        details=pairs,
    )


def _convert(format, row, where):
    try:
        return format.convert(row)
    except KeyError as error:
        raise DataError(
            f"{where}: there is no key {error}, which task.format={format.name} reads; its keys are {', '.join(row)}"
        ) from None
    except ValueError as error:
        raise DataError(f"{where}: {error}; correct the row") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise DataError(
            f"{where}: the row is not as the files of task.format={format.name} have it ({error})"
        ) from None
