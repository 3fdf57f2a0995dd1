"""The labels of a row, of which several can be right: from one column, or from one column for each label."""

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.rows.labels import no_label
from bert_tf.tasks.rows.values import BadRow, as_list, as_string

_TRUTH = {"1": True, "true": True, "t": True, "yes": True, "0": False, "false": False, "f": False, "no": False}


def label_reader(table, columns, label_set=()):
    """What reads the labels of a row.

    Args:
        table: a `Table`.
        columns: `MultiLabelColumns`.
        label_set: the label set, as far as it is known.

    Returns:
        (the column or columns, function(row) -> tuple of str, which raises `BadRow`).

    Raises:
        DataError: there is no such column.
    """
    if isinstance(columns.label, tuple):
        return list(columns.label), _from_columns(table, columns.label)
    column = table.find(columns, "label")
    return column, _from_one_column(table, column, columns.separator, label_set)


def split_labels(text, separator):
    """The labels in a text, a tuple without empty ones: "joy, love" -> ("joy", "love")."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(separator) if part.strip()))


def _from_one_column(table, column, separator, label_set):
    def read(row):
        value = table.cell(row, column, "label")
        several = sorted(value) if isinstance(value, set) else as_list(value)
        if several is not None:
            labels = tuple(dict.fromkeys(map(as_string, several)))
            if None in labels:
                raise BadRow(f"'{column}' holds {brief(value)}; it must hold texts; correct the row")
        elif value is None:
            labels = ()
        else:
            labels = split_labels(table.text(row, column, "label"), separator)
        problem = next(filter(None, (no_label(label, label_set) for label in labels)), None)
        if problem:
            raise BadRow(problem)
        return labels

    return read


def _from_columns(table, names):
    for name in names:
        if name not in (table.names or ()):
            hint = nearest(name, table.names) if table.names else "; the file is read without a header"
            raise DataError(f"{table.path}: there is no column '{name}' of data.columns.label{hint}")

    def read(row):
        chosen = []
        for name in names:
            value = table.text(row, name, "label").strip()
            if value.lower() not in _TRUTH:
                raise BadRow(
                    f"'{name}' is '{brief(value)[1:-1]}'; it must say whether the label is right: 1 or 0, true or false"
                )
            chosen += [name] * _TRUTH[value.lower()]
        return tuple(chosen)

    return read
