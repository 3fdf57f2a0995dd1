"""Data of text to text: a source and a target column of any table, or a data set's own files in one of T5's formats."""

from bert_tf.errors import Advice, DataError
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.glue import open_glue
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.text_to_text.t5_formats import TextPair, glue_row
from bert_tf.tasks.texts.text_task import check_filled, read_label


def open_texts(data, format, columns, labelled, row_of=None):
    """The table of sources and targets, and the columns with which it is read.

    Args:
        data, columns, row_of: of `open_table`.
        format: a `T5Format`; None for any table.
        labelled: whether every example must have a target.

    Raises:
        DataError: a file without columns.
    """
    table, columns = open_glue(format and format.glue, data, columns, labelled, row_of)
    if table.format == "conll" or (table.format == "lines" and labelled):
        raise DataError(
            f"{table.path} has no columns, and text_to_text reads a source and a target column; if it is a table, name its "
            "format, e.g. ",
            Advice("data.columns.format", "tsv"),
        )
    return table, columns


def read_sources(table, columns, labelled, label_set=()):
    """`Examples` of a source and a target column; without `labelled` of sources alone, or of plain lines.

    Args:
        table, columns, labelled: of `open_texts`.
        label_set: the label set, where the targets are labels.

    Raises:
        DataError: a missing column, or a bad row; with file and line.
    """
    source = 0 if table.format == "lines" else table.find(columns, "source")
    target = table.find(columns, "target") if labelled else None
    identifier = None if labelled else table.id_key()

    def read(row):
        text = table.text(row, source, "source")
        label = read_label(table, row, target, label_set) if labelled else None
        check_filled(text, "text", table, labelled)
        return [Example(text, label=label, id=table.id_of(row, identifier))]

    chosen = {"source": source} | ({"target": target} if labelled else {})
    return read_examples(table, read, columns, labelled, chosen, identifier)


def read_format(table, format, columns, labelled):
    """`Examples` of a data set's own file, with a `TextPair` for each in `details`.

    Args:
        table, columns, labelled: of `open_texts`.
        format: a `T5Format`.

    Raises:
        DataError: a row that lacks a key or a target; with file and line.
    """
    if table.format == "lines":

        def as_row(row):
            return source_row(format, row[0])

    elif format.glue and table.width is not None:
        as_row = _glue_reader(table, format, columns, labelled)
    else:
        as_row = table.as_dict

    def read(row):
        row = as_row(row)
        pairs = [row] if isinstance(row, TextPair) else _convert(format, row)
        if labelled and any(pair.target is None for pair in pairs):
            raise BadRow("the row has no label, which only predict allows; add it")
        return [Example(p.source, label=str(p.target), id=_id(p), details=p) for p in pairs]

    return read_examples(table, read, columns, labelled)


def _id(pair):
    return {} if pair.identifier is None else {"id": pair.identifier}


def source_row(format, text):
    """The row of a text: of the format's only field, or a whole source."""
    return {format.field: text} if format.field else TextPair(text, None)


def _glue_reader(table, format, columns, labelled):
    """What makes a row of GLUE's TSV files a dict with the keys that the format reads: function(row) -> dict."""
    text, pair = table.find(columns, "text"), table.find(columns, "text_pair", required=False)
    label = table.find(columns, "label") if labelled else None
    identifier = None if labelled else table.id_key()

    def as_row(row):
        texts = [table.text(row, key, "text") for key in (text, pair) if key is not None]
        if not all(one.strip() for one in texts):
            raise BadRow("a text is empty; remove the row")
        row_of_label = {"label": read_label(table, row, label, format.labels or ())} if labelled else {}
        return glue_row(format.glue, *texts) | row_of_label | table.id_of(row, identifier)

    return as_row


def _convert(format, row):
    try:
        return format.convert(row)
    except KeyError as error:
        raise BadRow(
            f"there is no key {error}, which task.format={format.name} reads; its keys are {', '.join(row)}"
        ) from None
    except ValueError as error:
        raise BadRow(f"{error}; correct the row") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise BadRow(f"the row is not as the files of task.format={format.name} have it ({error})") from None
