"""The base of classification and regression: one label for a text or a pair of texts."""

import abc

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.glue import test_columns
from bert_tf.tasks.sequences import Sequences, tokenize
from bert_tf.tasks.tables.columns import as_string, read_columns
from bert_tf.tasks.tables.files import file_format, read_table
from bert_tf.tasks.tables.labels import no_label
from bert_tf.tasks.task import Task
from bert_tf.tokenizers.layout import with_layout


class TextTask(Task):
    """Base class of tasks with one label for each text or pair: reads and tokenizes them.

    A subclass defines `learn`, `label_array`, `make_model`, `scores` and `answers`, and may define `parse_labels`;
    where a label is no str in one column also `read_labels`, `given_label` and `label_problem`.

    Example:
        issubclass(ClassificationTask, TextTask)  # True
        task = ClassificationTask({}, tokenizer)
        task.examples(["good", "bad"], labels=["pos", "neg"]).labels  # ['pos', 'neg']
    """

    #: How `read_columns` reads labels; None: each is a str in one column.
    read_labels = None

    def given_label(self, label):
        """A label from Python as those of a file are; None for what is none."""
        return as_string(label)

    def label_problem(self, label):
        """Why what `given_label` returned cannot be a label; None if it can."""
        return no_label(label, self.labels or ())

    def make_tokenizer(self, tokenizer):
        return with_separators(tokenizer, self.config.layout)

    @abc.abstractmethod
    def label_array(self, examples):
        """The labels as the model is trained on them: int32 or float32 array [examples]."""

    def model_options(self, encoder):
        """Arguments of `TaskModel` that the settings and the family of the encoder decide."""
        both = self.config.pair_order == "both"
        if both and self.pairs is False:
            raise ConfigError("task.pair_order=both is for pairs, and the texts are single; remove task.pair_order")
        return {
            "head": self.head_of(encoder.config),
            "lm_weight": self.config.lm_weight,
            "both_orders": self.tokenizer.layout if both else None,
        }

    def parse_labels(self, examples):
        """`examples` with its labels, which are read as str, in the task's own type."""
        return examples

    def read_file(self, path, labelled):
        columns = self.config.columns
        format = file_format(path, columns.format)
        if format == "conll":
            raise DataError(
                f"{path} holds tagged words (CoNLL), but the task is {self.kind}; set task.kind=tagging, or, if it is "
                "a table, its format, e.g. --set task.columns.format=tsv"
            )
        if format == "lines" and labelled:
            raise DataError(
                f"{path}: plain text has no labels, only predict takes it; if the file has columns, name its format, "
                "e.g. --set task.columns.format=tsv"
            )
        other = None if labelled else test_columns(self.config.preset, columns)
        if other and format == "tsv" and other.text in read_table(path, format).first():
            columns = other
        examples = read_columns(path, format, columns, labelled, self.pairs, self.labels, label_reader=self.read_labels)
        if self.pairs is None:
            self.pairs = examples.text_pairs is not None
        return self.parse_labels(examples) if labelled else examples

    def from_list(self, inputs):
        pairs = self.pairs if self.pairs is not None else bool(inputs) and not isinstance(inputs[0], str)
        for index, given in enumerate(inputs):
            texts = given if pairs and isinstance(given, (tuple, list)) and len(given) == 2 else [given]
            if len(texts) != 1 + pairs or not all(isinstance(text, str) for text in texts):
                wanted = "pairs (text, text)" if pairs else "single texts"
                raise DataError(f"this task was trained on {wanted}; input {index} is {brief(given)}")
        if not pairs:
            return Examples(texts=inputs)
        return Examples(texts=[first for first, _ in inputs], text_pairs=[second for _, second in inputs])

    def encode(self, examples):
        first = tokenize(self.tokenizer, examples.texts)
        layout = self.tokenizer.layout
        lengths = first.row_lengths().numpy() + layout.special_tokens_per_sequence
        second = None
        if examples.text_pairs is not None:
            second = tokenize(self.tokenizer, examples.text_pairs)
            pair_frame = layout.special_tokens_per_pair - layout.special_tokens_per_sequence
            lengths = lengths + second.row_lengths().numpy() + pair_frame
        labels = None if examples.labels is None else self.label_array(examples)
        return Sequences(first, second, np.minimum(lengths, self.config.sequence_length), labels)

    def examples(self, texts, text_pairs=None, labels=None):
        """Examples from Python lists, checked as those of a file are.

        Args:
            texts, text_pairs: lists of str.
            labels: list of str or int (classification), of float (regression), of lists of str (multi_label), or None.
        """
        for name, values in (("text_pairs", text_pairs), ("labels", labels)):
            if values is not None and len(values) != len(texts):
                raise DataError(f"there are {len(texts)} texts and {len(values)} {name}; there must be as many")
        given, labels = labels, None if labels is None else [self.given_label(label) for label in labels]
        text_pairs = None if text_pairs is None else list(text_pairs)
        examples = Examples(texts=list(texts), text_pairs=text_pairs, labels=labels)
        for index, pair in enumerate(zip(examples.texts, text_pairs or examples.texts)):
            for text in pair:
                if not isinstance(text, str):
                    raise DataError(f"{examples.where(index)}: the text is {brief(text)}; it must be a str")
            problem = labels and (
                f"the label is {brief(given[index])}; a label is a str or a number"
                if labels[index] is None
                else self.label_problem(labels[index])
            )
            if problem:
                raise DataError(f"{examples.where(index)}: {problem}")
        if self.pairs is None:
            self.pairs = text_pairs is not None
        if labels is None:
            return examples
        examples = self.parse_labels(examples)
        self.learn(examples)
        return examples


def with_separators(tokenizer, layout):
    """The tokenizer with the layout of that name; None for its own.

    One whose own layout has no special tokens, as GPT's, gets "t5" if it has a separator, else "gpt1".
    """
    if layout is None and tokenizer.layout_name == "none":
        layout = "gpt1" if tokenizer.sep_id is None else "t5"
    return with_layout(tokenizer, layout) if layout else tokenizer
