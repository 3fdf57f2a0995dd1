"""The labels of a row, of which several can be right: from one column, or from one column for each label."""

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tasks.config import LABEL_NAMES
from bert_tf.tasks.tables.columns import Malformed, as_string
from bert_tf.tasks.tables.labels import no_label

_TRUTH = {"1": True, "true": True, "t": True, "yes": True, "0": False, "false": False, "f": False, "no": False}


def label_reader(config):
    """What reads the labels of a file: a function for `read_columns`, see there.

    Args:
        config: `MultiLabelConfig`.

    Raises:
        ConfigError: settings that contradict each other.
    """
    if config.label_columns is None:
        return lambda find: _from_one_column(find, config)
    if config.labels is not None and set(config.labels) != set(config.label_columns):
        raise ConfigError("task.labels and task.label_columns name different labels; remove task.labels")
    if config.columns.label is not None:
        raise ConfigError("task.columns.label and task.label_columns both say where the labels are; remove one")
    return lambda find: _from_columns(find, config.label_columns)


def split_labels(text, separator):
    """The labels in a text, a tuple without empty ones: "joy, love" -> ("joy", "love")."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(separator) if part.strip()))


def _from_one_column(find, config):
    column = find(config.columns.label, LABEL_NAMES, "label")

    def read(row):
        value = find.cell(row, column, "label")
        if isinstance(value, list):
            labels = tuple(dict.fromkeys(as_string(label) for label in value))
            if None in labels:
                raise Malformed(f"'{column}' holds {brief(value)}; it must hold texts; correct the row")
        elif value is None:
            labels = ()
        else:
            labels = split_labels(find.value(row, column, "label"), config.separator)
        problem = next(filter(None, (no_label(label, config.labels or ()) for label in labels)), None)
        if problem:
            raise Malformed(problem)
        return labels

    return {"labels": column}, read


def _from_columns(find, names):
    for name in names:
        if name not in (find.names or ()):
            hint = nearest(name, find.names) if find.names else "; the file is read without a header"
            raise DataError(f"{find.path}: there is no column '{name}' of task.label_columns{hint}")

    def read(row):
        chosen = []
        for name in names:
            value = find.value(row, name, "label")
            if value.lower() not in _TRUTH:
                raise Malformed(
                    f"'{name}' is '{brief(value)[1:-1]}'; it must say whether the label is right: 1 or 0, true or false"
                )
            chosen += [name] * _TRUTH[value.lower()]
        return tuple(chosen)

    return {"labels": list(names)}, read
