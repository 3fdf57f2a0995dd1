"""What every fine-tuning task shares: files to examples, examples to batches, a model to results.

A task knows its data, features, model and metrics, and nothing of how it is trained: a training loop
gets the task as an argument.
"""

import json
import unicodedata
import weakref
from pathlib import Path

import numpy as np
from absl import logging

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.tasks.config import METRICS, TaskRecord, check_task
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.reinitialization import reinitialize_top_layers

TASK_FILE = "task.json"
#: Above this part of unknown tokens something is wrong with the text or the tokenizer.
UNKNOWN_HIGH = 0.05


class Task:
    """Base class of the fine-tuning tasks; make one with `build_task` or `load_task`.

    Args:
        config: `TaskConfig`.
        tokenizer: the encoder's tokenizer.

    Attributes:
        config: the config with its preset filled in.
        metric: name of the metric to maximise on the dev set, a key of what `evaluate` returns.
        labels: tuple of str, the label set; None until it is known (from the config, or from the
            first labelled file that is read). Regression has none.
        pairs: whether the texts are pairs; None until the first file is read.
    """

    kind = None

    def __init__(self, config, tokenizer):
        self.config = check_task(config)
        self.tokenizer = tokenizer
        self.labels = self.config.labels
        self.pairs = None
        self.metric = self.config.metric or METRICS[self.kind][0]  # a tagger's, until its tags are known
        self._rows = weakref.WeakKeyDictionary()  # tokenizing once serves every epoch and evaluation

    # -- data ------------------------------------------------------------------------------------

    def read(self, path, labelled=True):
        """Reads a data file; the first labelled one (the training file) fixes what is not configured:
        the label set, and whether the texts are pairs.

        Args:
            path: TSV, CSV, JSON (an object a line, or an array), CoNLL, or plain text with an example
                a line.
            labelled: whether every example must have a label; False reads files for `predict`.

        Returns:
            `Examples`.

        Raises:
            DataError: a file that cannot be used as it is; with file, line and what to do.
        """
        examples = self._read(str(path), labelled)
        if labelled:
            self._learn(examples)
            self._check(examples)
            if examples.skipped:
                logging.warning("%s: %d malformed rows are left out", examples.path, examples.skipped)
        return examples

    def from_list(self, inputs):
        """`Examples` of a list of inputs as `predict` takes it, without labels."""
        raise NotImplementedError

    def rows(self, examples):
        """`examples` as `Rows` of token ids; computed once for each `Examples` object.

        A warning is logged where more than 5 % of the tokens are unknown to the tokenizer.
        """
        if len(examples) == 0:
            raise DataError(f"{examples.path}: no examples")
        if examples not in self._rows:
            self._rows[examples] = self._encode(examples)
            tokens, unknown = self.unknown_tokens(examples)
            if unknown > UNKNOWN_HIGH * tokens:
                logging.warning("%s: %s", examples.path, _unknown_warning(examples, tokens, unknown))
        return self._rows[examples]

    def unknown_tokens(self, examples):
        """(how many tokens the examples have, how many of them the tokenizer does not know)."""
        return self.rows(examples).count_tokens(self.tokenizer.unk_id)

    def dataset(
        self, examples, batch_size, training=False, seed=0, epoch=0, start_step=0, static_shapes=False
    ):
        """One epoch of batches, padded to the bound of their length bucket.

        Every row is in exactly one batch, in training too. A training epoch is shuffled, and a pure
        function of (seed, epoch): `start_step=k` equals skipping k batches.

        Args:
            examples: `Examples`.
            batch_size: examples of a batch, over all replicas; `config.tokens_per_batch` overrides it.
            training: whether to shuffle.
            seed, epoch: of the order.
            start_step: the first batch.
            static_shapes: one shape for all batches, filled up with rows of weight 0 (TPU).

        Returns:
            A `tf.data.Dataset` of feature dicts with shapes [None, None], or static ones.
        """
        rows, config = self.rows(examples), self.config
        plan = rows.plan(config, batch_size, seed if training else None, epoch, static_shapes)
        full = max(len(indexes) for indexes, _ in plan)
        return rows.dataset(
            plan, self.tokenizer, config.sequence_length, start_step, full if static_shapes else None
        )

    def steps_per_epoch(self, examples, batch_size, static_shapes=False):
        """The number of batches of an epoch, the same for every seed and epoch."""
        return len(self.rows(examples).plan(self.config, batch_size, static_shapes=static_shapes))

    # -- model -----------------------------------------------------------------------------------

    def model(self, encoder):
        """The `TrainableModel` of this task on `encoder`, whose top layers begin afresh if configured.

        Raises:
            ConfigError: rows longer than the encoder's positions, or labels not known yet.
        """
        longest, wanted = encoder.config.max_positions, self.config.sequence_length
        if wanted > longest:
            raise ConfigError(
                f"task.sequence_length={wanted} is beyond the encoder's {longest} positions; "
                f"set task.sequence_length={longest} or less"
            )
        model = self._model(encoder)
        if self.config.reinitialize_layers:
            reinitialize_top_layers(encoder, self.config.reinitialize_layers)
        return model

    def evaluate(self, model, examples, batch_size=32, report=False):
        """The metrics over all examples, exact for every batch size.

        Args:
            model: from `model`.
            examples: `Examples` with labels.
            batch_size: examples of a batch.
            report: whether to add `report`, the scores of each label or type of entity.

        Returns:
            dict of floats by metric name (`loss` among them), `unknown_tokens` (which part of the tokens
            the tokenizer does not know, 0 to 1), `examples` (their number), `collapsed`
            (bool: every prediction is the same while the labels are not) and, only if collapsed,
            `warning`, a sentence that says so. `report` is {"labels": {label: {"precision", "recall",
            "f1", "support"}}, "confusion": counts by true label, then by predicted one
            (classification)}, or {"entities": {type: the same four}}.

        Raises:
            DataError: the examples have no labels.
            ConfigError: a report of regression.
        """
        if examples.labels is None:
            raise DataError(f"{examples.path}: evaluation needs labels; read it with labelled=True")
        results = self._infer(model, examples, batch_size)
        scores = self._scores(examples, results)
        tokens, unknown = self.unknown_tokens(examples)
        scores["unknown_tokens"] = unknown / max(tokens, 1)
        return scores | ({"report": self._report(examples, results)} if report else {})

    def predict(self, model, inputs, batch_size=32):
        """The model's answers.

        Args:
            model: from `model`.
            inputs: a list of str, of (str, str) for pairs, or of lists of words (tagging); or the
                `Examples` of a file, from `read(path, labelled=False)`.
            batch_size: examples of a batch.

        Returns:
            A list of dicts in the order of the inputs, as many as there are; see the task. For a file
            there is one for each of its lines (rows, items or sentences) and begins with "line", "id"
            if the file has a column of that name, and "text"; a line without a text is answered by
            {"line": 7, "error": "the line is empty"}.
        """
        examples = inputs if hasattr(inputs, "texts") else self.from_list(list(inputs))
        answers = self._answers(examples, self._infer(model, examples, batch_size)) if len(examples) else []
        return answers if examples.lines is None else examples.one_a_line(answers)

    def baselines(self, train, examples):
        """What `evaluate` gives for predictions that look at `train`'s labels alone.

        Returns:
            dict from a baseline's name to its metrics.
        """
        raise NotImplementedError

    def not_above(self, scores, baselines):
        """A sentence if `scores` are not better than those of a baseline, else None.

        Args:
            scores: what `evaluate` gave, or means of it.
            baselines: what `baselines` gave for the same examples.
        """
        name, best = max(((n, b[self.metric]) for n, b in baselines.items()), key=lambda pair: pair[1])
        score = scores[self.metric]
        if score > best or score == 1.0:
            return None
        return (
            f"{self.metric} is {score:.4f}, not above the {best:.4f} of the baseline '{name}', which uses no model: "
            "train longer, on more data, or from a model that was pretrained longer"
        )

    # -- beside the run --------------------------------------------------------------------------

    def save(self, folder):
        """Writes `task.json`, from which `load_task` makes the same task."""
        with atomic_write(Path(folder) / TASK_FILE) as file:
            json.dump(to_dict(self._record()), file, indent=2, ensure_ascii=False)
            file.write("\n")

    def _record(self):
        return TaskRecord(
            config=self.config, labels=self.labels, pairs=self.pairs, tokenizer_fingerprint=self.tokenizer.fingerprint
        )

    @classmethod
    def _restore(cls, record, tokenizer):
        task = cls(record.config, tokenizer)
        task.labels, task.pairs = record.labels, record.pairs
        return task

    # -- for the tasks ---------------------------------------------------------------------------

    def _infer(self, model, examples, batch_size):
        """What the model says of each row: a list of dicts of arrays, in the order of the rows."""
        rows = self.rows(examples)
        plan, full = rows.plan(self.config, batch_size, static_shapes=model.static_shapes), None
        if model.static_shapes:
            replicas = model.distribute_strategy.num_replicas_in_sync
            full = -(-max(len(indexes) for indexes, _ in plan) // replicas) * replicas
        results = [None] * len(rows.lengths)
        dataset = rows.dataset(plan, self.tokenizer, self.config.sequence_length, static_rows=full)
        dataset = dataset.map(lambda features: {name: features[name] for name in INPUTS})
        # One trace for all shapes, where calling `infer` would make one for each of the first few.
        infer = model.infer.get_concrete_function(dataset.element_spec)
        for (indexes, _), features in zip(plan, dataset, strict=True):
            outputs = {name: np.asarray(value) for name, value in infer(features).items()}
            for position, index in enumerate(indexes):
                results[index] = {name: value[position] for name, value in outputs.items()}
        return results

    def _read(self, path, labelled):
        raise NotImplementedError

    def _learn(self, examples):
        raise NotImplementedError

    def _check(self, examples):
        raise NotImplementedError

    def _encode(self, examples):
        raise NotImplementedError

    def _model(self, encoder):
        raise NotImplementedError

    def _scores(self, examples, results):
        raise NotImplementedError

    def _report(self, examples, results):
        raise ConfigError(f"a report by label is for classification and tagging, the task is {self.kind}")

    def _answers(self, examples, results):
        raise NotImplementedError


def _unknown_warning(examples, tokens, unknown):
    texts = examples.texts or [word for words in examples.words for word in words]
    texts = texts + (examples.text_pairs or [])
    if any(not unicodedata.is_normalized("NFC", text) for text in texts):
        check = (
            "the text holds decomposed characters (NFD, as macOS writes them), which the vocabulary may hold composed "
            "only: compare with unicodedata.normalize('NFC', text)"
        )
    else:
        check = (
            "is the text in a language or script that the vocabulary was not made for, is it decomposed (NFD), is it "
            f"another column ({', '.join(f'{k}: {v!r}' for k, v in examples.columns.items()) or 'texts from Python'})?"
        )
    return (
        f"{100 * unknown / tokens:.1f} % of the tokens ({unknown:,} of {tokens:,}) are unknown to the tokenizer and "
        f"tell the model nothing; {check}"
    )
