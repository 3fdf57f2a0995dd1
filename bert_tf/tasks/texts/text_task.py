"""The base of classification and regression: one label for a text or a pair of texts."""

import abc

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.glue import open_glue
from bert_tf.tasks.rows.labels import no_label
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.sequences import Sequences, packed_lengths, tokenize
from bert_tf.tasks.task import Task


class TextTask(Task):
    """Base class of tasks with one label for each text or pair: reads and tokenizes them.

    A subclass defines `label_array`, `make_model`, `measure` and `answers`, and may define `learn_state`, which adds to what
    is learned here, and `label_reader`.

    Example:
        issubclass(ClassificationTask, TextTask)  # True
        task = ClassificationTask({}, tokenizer)
        task.read({"text": ["good", "bad"], "label": ["pos", "neg"]}).labels  # ['pos', 'neg']
    """

    @abc.abstractmethod
    def label_array(self, examples):
        """The labels as the model is trained on them: int32 or float32 array [examples]."""

    def model_options(self, encoder):
        """Arguments of `TaskModel` that the settings and the family of the encoder decide."""
        both = getattr(self.config.decoder, "pair_order", "given") == "both"
        if both and self.pairs is False:
            raise ConfigError("task.decoder.pair_order=both is for pairs, and the texts are single; remove it")
        return {
            "head": self.head_of(encoder.config),
            "lm_weight": self.config.decoder.lm_weight,
            "both_orders": self.tokenizer.layout if both else None,
        }

    def open(self, data, columns, labelled):
        table, columns = open_glue(getattr(self.config, "preset", None), data, columns, labelled, self.row_of)
        if table.format == "conll":
            raise DataError(
                f"{table.path} holds tagged words (CoNLL), but the task is {self.kind}; set ",
                Advice("task.kind", "tagging"),
                ", or, if it is a table, its format, e.g. ",
                Advice("data.columns.format", "tsv"),
            )
        if table.format == "lines" and labelled:
            raise DataError(
                f"{table.path}: plain text has no labels, only predict takes it; if the file has columns, name its format, "
                "e.g. ",
                Advice("data.columns.format", "tsv"),
            )
        return table, columns

    def row_of(self, item):
        texts = (item,) if isinstance(item, str) else item
        count = isinstance(texts, (tuple, list)) and all(isinstance(text, str) for text in texts) and len(texts)
        if count not in ((1, 2) if self.pairs is None else (1 + self.pairs,)):
            accepted = {None: "a text, or a pair of texts", True: "a pair of texts", False: "a single text"}[self.pairs]
            raise BadRow(f"it is {brief(item)}; the task takes {accepted}")
        return dict(zip(("text", "text_pair"), texts))

    def read_table(self, table, columns, labelled):
        return read_texts(table, columns, self.label_reader if labelled else None, self.pairs)

    def learn_state(self, examples):
        return {"pairs": examples.text_pairs is not None}

    def label_reader(self, table, columns):
        """(column of the labels, function(row) -> label, which raises `BadRow`)."""
        column, read = label_reader(table, columns, self.labels or ())
        return column, lambda row: self.parse_label(read(row))

    def parse_label(self, label):
        """A label, which is read as str, in the task's own type; raises `BadRow`."""
        return label

    def encode(self, examples):
        columns = [texts for texts in (examples.texts, examples.text_pairs) if texts is not None]
        ids = [tokenize(self.tokenizer, texts) for texts in columns]
        lengths = (part.row_lengths().numpy() for part in ids)
        lengths = packed_lengths(self.tokenizer.layout, self.config.sequence_length, *lengths)
        labels = None if examples.labels is None else self.label_array(examples)
        return Sequences(ids[0], ids[1] if len(ids) > 1 else None, lengths, labels)


def read_texts(table, columns, label_reader=None, pairs=None):
    """`Examples` of texts or pairs.

    Args:
        table: a `Table`.
        columns: `TextColumns`.
        label_reader: function(table, columns) -> (the column of the labels, function(row) -> label), such as the one
            below; None for no labels.
        pairs: whether there must (True) or must not (False) be a second text; None: either.

    Raises:
        DataError: a missing column, or a row without a text or without a label; with file and line.
    """
    if table.format == "lines":
        chosen = {"text": 0}
    else:
        required = {"text": True, "text_pair": bool(pairs)}
        roles = [role for role in required if role in columns.usual]
        columns_of_roles = {role: table.find(columns, role, required[role]) for role in roles}
        chosen = {role: column for role, column in columns_of_roles.items() if column is not None}
    if pairs is False and "text_pair" in chosen:
        raise DataError(
            f"{table.path} has a second text in the column {chosen['text_pair']!r}, but the task was trained on single texts "
            "and would not read it; remove the column, or train on pairs"
        )
    label_column, label_of = label_reader(table, columns) if label_reader else (None, None)
    identifier = None if label_reader or table.id_key() in chosen.values() else table.id_key()

    labelled = label_reader is not None

    def read(row):
        texts = [table.text(row, column, role) for role, column in chosen.items()]
        label = label_of(row) if labelled else None
        for name, text in zip(("text", "second text"), texts):
            check_filled(text, name, table, labelled)
        return [Example(*texts, label=label, id=table.id_of(row, identifier))]

    columns_read = chosen | ({"label": label_column} if label_reader else {})
    return read_examples(table, read, columns, labelled, columns_read, identifier)


def check_filled(text, name, table, labelled):
    """Raises BadRow for a text of white space; of one from Python `predict` answers any."""
    if not text.strip() and (labelled or table.is_file):
        raise BadRow(f"the {name} is empty" + "; remove the row" * labelled)


def label_reader(table, columns, label_set=()):
    """(the column of the labels, function(row) -> label, a str, which raises `BadRow`); `label_set` as of `read_label`."""
    column = table.find(columns, "label")
    return column, lambda row: read_label(table, row, column, label_set)


def read_label(table, row, column, label_set):
    """The label in a column of a row: a str.

    Raises:
        BadRow: there is none, or it is what pandas writes for none; `label_set` are the labels that may be so called.
    """
    value = table.cell(row, column, "label")
    if value is None:
        raise BadRow(f"there is no '{column}' (label), it is null; correct the row")
    label = table.text(row, column, "label").strip()
    problem = no_label(label, label_set)
    if problem:
        raise BadRow(problem)
    return label
