"""What every fine-tuning task shares: files to examples, examples to batches, a model to results.

A task knows its data, features, model and metrics; `bert_tf.training` trains it.
"""

import abc
import dataclasses
import json
import os
import weakref
from pathlib import Path

import numpy as np
from absl import logging

from bert_tf.config import to_dict
from bert_tf.errors import Advice, ConfigError, DataError, guarded
from bert_tf.files import atomic_write
from bert_tf.models.families import family_of, task_head
from bert_tf.tasks import metrics
from bert_tf.tasks.advice import not_above, unknown_warning
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.features import FROZEN_OUTPUTS
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.inference import outputs_of
from bert_tf.tasks.metric_registry import is_lower_better
from bert_tf.tasks.record import TASKS, check_columns, check_task
from bert_tf.tasks.reinitialization import reinitialize_top_layers, with_vocabulary
from bert_tf.tasks.rows.columns_config import changed_columns
from bert_tf.tasks.rows.labels import check_labels_of
from bert_tf.tasks.rows.opening import columns_among, open_table
from bert_tf.tasks.state import TaskState
from bert_tf.tokenizers.layout import with_separators

TASK_FILE = "task.json"


class Task(abc.ABC):
    """Base class of the fine-tuning tasks; make one with `build_task` or `load_task`.

    A task is a value: nothing that it does changes it; `learn` and `tuned` return another one, which knows more.

    Your own task is a subclass and a `TaskRecord`, see `register_task`. The subclass defines the abstract methods:

        row_of, read_table     a row, and a table of rows, to `Examples` (`TextTask` has both)
        encode                 `Examples` to `Sequences` of token ids and labels (`TextTask` needs `label_array`)
        make_model             an encoder to a `TaskModel`
        measure                what the model says of each example, and the labels, to metrics
        answers                what the model says to predictions

    and, if it likes, `learn_state` (the label set and the like, from the training examples), `check` (of labels), `decide`
    (outputs of the model to what it says of each example), `guesses` (what is said without a model, for baselines),
    `report` (scores of each label) and `findings` (what report.html shows beyond the metrics).

    Args:
        config: `TaskConfig`, or a dict of it.
        tokenizer: the encoder's tokenizer.
        columns: the columns of the training file, an instance of `config.columns`; or a dict of those that have other
            names than usual (and, of GLUE's tasks, than in its files).
        backbone: the model that the task is for, or its configuration; None for an encoder. A task for a decoder must
            have it.
        state: the `TaskState` of another task with these settings, in place of `backbone`.

    Attributes:
        config: the config with its preset filled in.
        columns: the columns that files have, where `read` is not given others.
        tokenizer: the tokenizer with the layout that `config.decoder.layout` asks for.
        state: `TaskState`.

    Example:
        task = build_task({"kind": "classification", "sequence_length": 32}, tokenizer)
        train = task.read({"text": ["a good film", "a bad film"], "label": ["pos", "neg"]})
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["accuracy"]
        task.predict(model, ["good"])  # [{"label": ..., "probability": ..., "probabilities": {...}}]
    """

    #: The dataclass of `state`.
    state_class = TaskState
    #: Whether the task's model reads the pooled output, where the head of the family does.
    pooler = True
    #: The kind of head that its model has: see `bert_tf.models.families.task_head`.
    head_kind = "classification"
    #: Whether the task is on the whole of an encoder-decoder; others are on its encoder alone.
    whole = False
    #: Of a task that writes texts the `Frame` in which its model reads sources; None for other tasks.
    frame = None
    #: The features that the model's `infer` takes, where they are there.
    inferred = (*INPUTS, FROZEN_OUTPUTS)

    def __init__(self, config, tokenizer, columns=None, backbone=None, state=None):
        self.config = check_task(config)
        self.columns = check_columns(self.config, columns)
        self.tokenizer = self.make_tokenizer(tokenizer)
        self.state = state or self.first_state(backbone and getattr(backbone, "config", backbone))
        self.check_settings()
        self._sequences = weakref.WeakKeyDictionary()  # texts are tokenized once for all epochs and evaluations

    def first_state(self, backbone_config):
        """The `TaskState` before a file is read, on a model of this configuration (None: any encoder)."""
        structure = family_of(backbone_config).structure if backbone_config else "encoder"
        return self.state_class(labels=getattr(self.config, "labels", None), structure=structure)

    def with_state(self, **changes):
        """The task with other values in its `state`."""
        state = dataclasses.replace(self.state, **changes)
        return type(self)(self.config, self.tokenizer, self.columns, state=state)

    def with_config(self, **changes):
        """The task with other settings that do not concern its state."""
        return type(self)(dataclasses.replace(self.config, **changes), self.tokenizer, self.columns, state=self.state)

    @property
    def kind(self):
        """The name of the task's record."""
        return self.config.kind

    @property
    def labels(self):
        """The label set of `state`."""
        return self.state.labels

    @property
    def known_labels(self):
        """The label set.

        Raises:
            ConfigError: it is not known yet.
        """
        if self.labels is None:
            raise ConfigError(
                "the label set is not known yet; learn it with task = task.learn(examples) from the training examples, or "
                "set task.labels"
            )
        return self.labels

    @property
    def pairs(self):
        """Whether the texts are pairs, of `state`."""
        return self.state.pairs

    @property
    def metric(self):
        """The metric that chooses the best epoch on the dev set, a key of what `evaluate` returns."""
        return self.config.metric or TASKS[self.kind].metrics[0]

    @property
    def test_metric(self):
        """What tables show of a test file: `metric`, unless that tunes something on the very file that it measures."""
        return self.metric

    @property
    def sign(self):
        """1 where a higher value of `metric` is better, -1 where a lower one is."""
        return -1 if is_lower_better(self.metric) else 1

    # -- what a subclass defines -----------------------------------------------------------------

    def make_tokenizer(self, tokenizer):
        """The tokenizer with the layout of the settings, or one with separators."""
        return with_separators(tokenizer, self.config.decoder.layout)

    def check_settings(self):  # noqa: B027, nothing is refused here
        """Refuses settings that do not fit each other, the tokenizer or the state; called when a task is made."""

    def open(self, data, columns, labelled):
        """The `Table` of data, and the columns with which it is read; arguments as for `read`."""
        return open_table(data, columns, self.row_of), columns

    @abc.abstractmethod
    def row_of(self, item):
        """The row of an input from Python that is not a dict, such as a text: a dict by the roles of the columns.

        Raises:
            BadRow: there is none, as of a number.
        """

    @abc.abstractmethod
    def read_table(self, table, columns, labelled):
        """`Examples` of a `Table`.

        Args:
            table: of `open`.
            columns: the columns, of the class that `TaskConfig.columns` names.
            labelled: whether every example must have a label.

        Raises:
            DataError: with file, line and what to do.
        """

    def learn_state(self, examples):
        """What labelled training examples determine of what is still open: the changes of `state`, a dict.

        Raises:
            DataError: they do not determine it, such as labels that are all the same.
        """
        return {}

    def check(self, examples):
        """Refuses labelled examples that do not fit what is known.

        Raises:
            DataError: names the example.
            ConfigError: the metric cannot be computed of them.
        """
        if self.labels is not None:
            check_labels_of(examples, self.labels)

    @abc.abstractmethod
    def encode(self, examples):
        """`examples` as `Sequences` of token ids, with labels as numbers if the examples have labels."""

    @abc.abstractmethod
    def make_model(self, encoder):
        """The `TaskModel` on `encoder`.

        Raises:
            ConfigError: the labels are not known yet.
        """

    def decide(self, examples, outputs):
        """What the model says of the examples, in the form that `measure`, `answers`, `report` and `findings` read.

        Args:
            examples: `Examples`.
            outputs: for each of the task's sequences a dict of arrays, what the model returns for it.

        Returns:
            Here a dict of arrays with one row for each sequence.
        """
        return {name: np.stack([output[name] for output in outputs]) for name in outputs[0]}

    @abc.abstractmethod
    def measure(self, examples, decided):
        """Metrics of what `decide`, or `guesses`, returned for labelled `Examples`.

        Returns:
            dict of floats by name with `loss`; "examples" (int), "collapsed" (bool) and, if so, "warning".
        """

    @abc.abstractmethod
    def answers(self, examples, decided):
        """The predictions: a list of dicts for JSON, one for each example. Arguments as for `measure`."""

    def deciding(self, answer):
        """The part of an answer in which two models agree or not; what only explains it (an n-best list) is left out."""
        return answer

    def guesses(self, train, examples):
        """What is said of `examples` by rules that know the labels of `train` alone: a rule's name -> as of `decide`."""
        return {}

    def baselines(self, train, examples):
        """The metrics of `guesses`: a rule's name -> dict as of `measure`."""
        guesses = self.guesses(train, examples).items()
        return {name: metrics.without_warning(self.measure(examples, guess)) for name, guess in guesses}

    def report(self, examples, decided):
        """The scores of each label, as `evaluate` returns them under "report". Arguments as for `measure`."""
        raise ConfigError(f"the task {self.kind} has no report by label; evaluate it without one")

    def placeholder_labels(self, examples):
        """Labels without meaning for unlabelled `Examples`, which a student reads with its teacher's answers."""
        raise ConfigError(f"task.kind={self.kind} reads no unlabelled examples in training; remove data.unlabelled")

    def findings(self, examples, decided):
        """What report.html shows beyond the metrics: a dict for JSON, with keys of `bert_tf.tasks.findings`.

        Arguments as for `measure`.
        """
        return {}

    def official(self, answers):
        """What `predict` returned, in the form that the official scorer of the data set reads, for JSON."""
        raise ConfigError(f"the task {self.kind} has no official form of predictions; leave out ", Advice("official"))

    def predictions_file(self, examples, answers, path):
        """What is written to a file of predictions with this ending, of `Examples` and what `predict` returned for them: a
        str; None for JSON lines.
        """
        return None

    # -- data ------------------------------------------------------------------------------------

    def read(self, data, labelled=True, columns=None):
        """Reads data. Labels are checked as far as the label set is known.

        Args:
            data: a file in one of the formats of docs/guides/tasks/data.md; or Python objects: a list or a generator of
                rows (a dict by the roles of the columns each, or without labels what `predict` takes), a dict of
                columns, a DataFrame of pandas, or a split of the package datasets.
            labelled: whether every example must have a label; False reads what `predict` answers.
            columns: what differs from the columns of the training file, a dict of settings; or a `ColumnsConfig` in
                their place. Of Python objects those that they have count, and else the names of the roles.

        Returns:
            `Examples`.

        Raises:
            DataError: data that cannot be used; with file, line and what to do.
        """
        usual_columns = self.columns if isinstance(data, (str, os.PathLike)) else columns_among(self.columns, data)
        columns = changed_columns(usual_columns, columns)
        examples = self.read_table(*self.open(data, columns, labelled), labelled)
        if labelled:
            self.check(examples)
            if examples.skipped:
                logging.warning("%s: %d malformed rows are left out", examples.path, examples.skipped)
        return examples

    def learn(self, examples):
        """The task that knows what labelled training examples determine: the label set, whether texts are pairs, ...

        Raises:
            DataError: they leave it open, or do not fit what is known; names the file and what to do.
            ConfigError: settings that do not fit them.
        """
        task = self.with_state(**self.learn_state(examples))
        task.check(examples)
        return task

    def sequences(self, examples):
        """What `encode` returns for `examples`; computed once for each `Examples` object.

        Logs a warning if more than 5 % of the tokens are unknown to the tokenizer.
        """
        if len(examples) == 0:
            raise DataError(f"{examples.path}: no examples")
        if examples not in self._sequences:
            self._sequences[examples] = self.encode(examples)
            tokens, unknown = self.unknown_tokens(examples)
            if warning := unknown_warning(examples, tokens, unknown):
                logging.warning("%s: %s", examples.path, warning)
        return self._sequences[examples]

    def add_features(self, examples, extras):
        """Gives the batches of `examples` further features; see `Sequences.extras`."""
        self._sequences[examples] = dataclasses.replace(self.sequences(examples), extras=extras)

    def unknown_tokens(self, examples):
        """(number of tokens in the examples, number of those that the tokenizer does not know)."""
        return self.sequences(examples).count_tokens(self.tokenizer.unk_id)

    def dataset(self, examples, batch_size, training=False, seed=0, epoch=0, start_step=0, static_shapes=False):
        """One epoch of batches, each padded to the bound of its length bucket.

        Every sequence is in exactly one batch, in training too. A training epoch is shuffled; its order is a
        pure function of (seed, epoch), so `start_step=k` equals skipping k batches. Read again, as by
        `fit(dataset, epochs=3)`, the dataset has the same order: make one for each epoch, with its number.

        Args:
            examples: `Examples`.
            batch_size: examples of a batch, over all replicas; `config.tokens_per_batch` overrides it.
            training: whether to shuffle.
            seed, epoch: of the order.
            start_step: the first batch.
            static_shapes: one shape for all batches, filled up with sequences of weight 0 (TPU).

        Returns:
            A `tf.data.Dataset` of feature dicts with shapes [None, None], or static ones.
        """
        sequences = self.sequences(examples)
        plan = sequences.plan(self.config, batch_size, seed if training else None, epoch, static_shapes)
        full = max(len(indexes) for indexes, _ in plan) if static_shapes else None
        return sequences.dataset(plan, self.tokenizer, self.config.sequence_length, start_step, full)

    def steps_per_epoch(self, examples, batch_size, static_shapes=False):
        """The number of batches of an epoch, the same for every seed and epoch."""
        return len(self.sequences(examples).plan(self.config, batch_size, static_shapes=static_shapes))

    # -- model -----------------------------------------------------------------------------------

    def head_of(self, config):
        """The `TaskHead` on a model of the configuration `config`, by `task.head` and `task.frozen_layers`."""
        settings = self.config.head
        is_bilstm = settings.name == "bilstm"
        name = settings.above if is_bilstm else settings.name
        head = task_head(config, self.head_kind, None if name == "published" else name)
        if features := self.config.frozen_features:
            return head.on_features(features)
        return head.above_bilstm(settings.layers, settings.units) if is_bilstm else head

    def needs_pooler(self, config):
        """Whether the task's model reads the pooled output of a model of the configuration `config`."""
        return self.pooler and self.head_of(config).reads == "pooled"

    def model(self, encoder):
        """The `TaskModel` on `encoder`, whose top `config.reinitialize_layers` layers get random weights.

        An encoder whose token table lacks tokens of the task's tokenizer is replaced by one with further rows, the
        backbone of the result.

        Raises:
            ConfigError: sequences longer than the encoder's positions, or labels not known yet.
        """
        longest, length = encoder.config.max_positions, self.config.sequence_length
        if length > longest:
            advice = Advice("task.sequence_length", longest)
            raise ConfigError(
                f"task.sequence_length={length} is beyond the encoder's {longest} positions; set ", advice
            )
        if (encoder.structure == "decoder") != (self.state.structure == "decoder"):
            raise ConfigError(
                f"the task is for models of the structure '{self.state.structure}', and {type(encoder).__name__} has "
                f"'{encoder.structure}'; give build_task the model, as backbone=model"
            )
        encoder = with_vocabulary(encoder, self.tokenizer.vocabulary_size)
        model = self.make_model(encoder)
        if getattr(self.config, "reinitialize_layers", 0):
            reinitialize_top_layers(encoder, self.config.reinitialize_layers)
        return model

    def evaluate(self, model, examples, batch_size=32, report=False, findings=False):
        """The metrics over all examples, exact for every batch size.

        Args:
            model: from `model`.
            examples: `Examples` with labels.
            batch_size: examples of a batch.
            report: whether to add `report`, the scores of each label or type of entity.
            findings: whether to add `findings`, what report.html shows beyond the metrics; {} where a bug in it made
                it fail, which is a warning.

        Returns:
            dict of floats by metric name, such as `loss`; `unknown_tokens` (the fraction of the tokens that
            the tokenizer does not know), `examples` (their number), `collapsed` (bool: every prediction is
            the same, the labels are not) and, only if collapsed, `warning` (str). `report` is
            {"labels": {label: {"precision", "recall", "f1", "support"}}, "confusion": counts by true label,
            then by predicted one (classification)}, or {"entities": {type: the same four}}.

        Raises:
            DataError: the examples have no labels.
            ConfigError: a report of a task that has none, such as regression.
        """
        if examples.labels is None:
            raise DataError(f"{examples.path}: evaluation needs labels; read it with labelled=True")
        decided = self.decide(examples, outputs_of(self, model, examples, batch_size))
        scores = self.measure(examples, decided)
        tokens, unknown = self.unknown_tokens(examples)
        scores["unknown_tokens"] = unknown / max(tokens, 1)
        if findings:
            scores["findings"] = {}
            with guarded(f"what {examples.path} shows of the model"):
                scores["findings"] = self.findings(examples, decided)
        return scores | ({"report": self.report(examples, decided)} if report else {})

    def predict(self, model, inputs, batch_size=32):
        """The model's predictions.

        Args:
            model: from `model`.
            inputs: a list of str, of (str, str) for pairs, or of lists of words (tagging); other data that `read`
                takes; or the `Examples` of a file, from `read(path, labelled=False)`.
            batch_size: examples of a batch.

        Returns:
            A list of dicts, one for each input in order; see `answers` of the task. For a file one for each line
            (row, item or sentence), which begins with "line", "id" if the file has a column of that name, and
            "text". The answer to a line without a text is {"line": 7, "error": "the line is empty"}.
        """
        examples = inputs if isinstance(inputs, Examples) else self.read(inputs, labelled=False)
        answers = []
        if len(examples):
            outputs = outputs_of(self, model, examples, batch_size, soon=True)
            answers = self.answers(examples, self.decide(examples, outputs))
        return answers if examples.lines is None else examples.answers_by_row(answers)

    def with_thresholds(self, scores):
        """The task with what the dev file determines, such as a threshold; itself where that is nothing.

        Args:
            scores: metrics of the best epoch on the dev file, as `evaluate` returns them.
        """
        return self

    def not_above(self, scores, baselines):
        """A warning if `scores` (of `evaluate`, or means of several) are not better than every baseline, else None."""
        return not_above(self.metric, self.sign, scores, baselines)

    # -- beside the run --------------------------------------------------------------------------

    def save(self, folder):
        """Writes `task.json`, from which `load_task` makes the same task."""
        content = to_dict({"config": self.config, "columns": self.columns, "state": self.state})
        with atomic_write(Path(folder) / TASK_FILE) as file:
            content["tokenizer_fingerprint"] = self.tokenizer.fingerprint
            json.dump(content, file, indent=2, ensure_ascii=False)
            file.write("\n")
