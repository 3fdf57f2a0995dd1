"""Regression of a text or a pair to one number, as on STS-B."""

import dataclasses

import numpy as np

from bert_tf.tasks import metrics
from bert_tf.tasks.columns import parse_numbers
from bert_tf.tasks.heads import Regressor
from bert_tf.tasks.text_task import TextTask

# Predictions that spread over less than this part of the labels' spread tell nothing apart.
COLLAPSED_SPREAD = 0.01


class RegressionTask(TextTask):
    """One number for each text or pair, trained on the squared error.

    `evaluate` gives `loss` (mean squared error, in the labels' unit squared), `pearson`, `spearman` and
    `mean_absolute_error`. `predict` gives {"score": float}.

    Attributes:
        mean, scale: mean and standard deviation of the first labels read, by which the model
            standardises; None until then.
    """

    kind = "regression"

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.mean = self.scale = None

    def _read(self, path, labelled):
        examples = super()._read(path, labelled)
        return parse_numbers(examples) if labelled else examples

    def _parse(self, examples):
        return parse_numbers(examples).labels

    def _learn(self, examples):
        if self.scale is None:
            self.mean = float(np.mean(examples.labels))
            self.scale = float(np.std(examples.labels)) or 1.0

    def _check(self, examples):
        pass  # parse_numbers has refused what is no number

    def _label_array(self, examples):
        return np.array(examples.labels, np.float32)

    def _model(self, encoder):
        scale = {} if self.scale is None else {"mean": self.mean, "scale": self.scale}
        return Regressor(encoder, self.config.dropout, name="regression", **scale)

    def _scores(self, examples, results):
        scores = self._metrics(examples, np.array([r["score"] for r in results], np.float64))
        spread, wanted = scores.pop("spread"), float(np.std(examples.labels))
        collapsed = wanted > 0 and spread < COLLAPSED_SPREAD * wanted
        scores["collapsed"] = collapsed
        if collapsed:
            scores["warning"] = (
                f"collapsed: the predictions are all about {np.mean([r['score'] for r in results]):.3g} (spread "
                f"{spread:.2g}, the labels' {wanted:.2g}); try another seed, a lower learning rate, a longer "
                "warm-up or more epochs"
            )
        return scores

    def _metrics(self, examples, predictions):
        labels = np.array(examples.labels, np.float64)
        return {
            "loss": float(np.mean((predictions - labels) ** 2)),
            "pearson": metrics.pearson(labels, predictions),
            "spearman": metrics.spearman(labels, predictions),
            "mean_absolute_error": float(np.mean(np.abs(predictions - labels))),
            "examples": len(labels),
            "spread": float(np.std(predictions)),
        }

    def _answers(self, examples, results):
        return [{"score": float(result["score"])} for result in results]

    def baselines(self, train, examples):
        """{"mean of the training labels": metrics}; its correlations are 0."""
        scores = self._metrics(examples, np.full(len(examples), np.mean(train.labels)))
        del scores["spread"]
        return {"mean of the training labels": scores}

    def _record(self):
        return dataclasses.replace(super()._record(), mean=self.mean, scale=self.scale)

    @classmethod
    def _restore(cls, record, tokenizer):
        task = super()._restore(record, tokenizer)
        task.mean, task.scale = record.mean, record.scale
        return task
