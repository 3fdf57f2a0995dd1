"""Served answers about whole texts and pairs: labels with their probabilities, or a score."""

import tensorflow as tf

from bert_tf.export.signatures import ServingModule
from bert_tf.tasks.multi_label.decoding import reaches_threshold


class ServedClassifier(ServingModule):
    """Text (or a pair) to a label.

    Outputs of `serving_default` and `ids` (and `pairs`, see `ServingModule`):
        label: string [N], the most probable.
        probabilities: float32 [N, L].
        labels: string [N, L], the label of each probability, also in assets/labels.json. The same for every text:
            TF Serving batches requests along the first axis of every output.

    Args:
        model: returns {"logits", "probabilities"}, [N, L] each, for the features of the data contract.
        tokenizer, sequence_length, pairs, static: as in `ServingModule`.
        labels: L str, in the order of the model's outputs.

    Example:
        module = ServedClassifier(Classifier(encoder, 2), tokenizer, ("neg", "pos"), sequence_length=32)
        write_saved_model(module, "served")  # served/1
    """

    def __init__(self, model, tokenizer, labels, sequence_length=128, pairs=False, static=False):
        super().__init__(model, tokenizer, sequence_length, pairs, static)
        self.labels = tuple(labels)

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, task.labels, pairs=task.pairs, **settings)

    def answer(self, features):
        count = len(self.labels)
        outputs = self.bucketed_outputs(features, logits=[count], probabilities=[count])
        logits, labels = outputs.pop("logits"), tf.constant(self.labels)
        return outputs | self.decided(logits) | {"labels": tf.tile(labels[None], [tf.shape(logits)[0], 1])}

    def decided(self, logits):
        """The outputs that say what is right, from float32 [N, L]."""
        return {"label": tf.gather(tf.constant(self.labels), tf.argmax(logits, axis=-1))}


class ServedMultiLabelClassifier(ServedClassifier):
    """Text (or a pair) to any number of labels.

    Outputs of `serving_default` and `ids` (and `pairs`, see `ServingModule`):
        probabilities: float32 [N, L], of each label by itself.
        labels: string [N, L], the label of each probability, also in assets/labels.json.
        predicted: bool [N, L], whether the probability reaches the threshold.

    Args:
        model, tokenizer, labels, sequence_length, pairs, static: as in `ServedClassifier`.
        threshold: a label is predicted where its probability is at least this.

    Example:
        model = MultiLabelClassifier(encoder, 2)
        module = ServedMultiLabelClassifier(model, tokenizer, ("joy", "love"), sequence_length=32)
        module.answer_text(["a good film", "bad"])["predicted"].shape  # [2, 2]
    """

    recorded = ("threshold",)

    def __init__(self, model, tokenizer, labels, sequence_length=128, pairs=False, static=False, threshold=0.5):
        super().__init__(model, tokenizer, labels, sequence_length, pairs, static)
        self.threshold = threshold

    @classmethod
    def of_task(cls, task, model, **settings):
        return super().of_task(task, model, threshold=task.config.threshold, **settings)

    def decided(self, logits):
        return {"predicted": reaches_threshold(logits, self.threshold)}


class ServedRegressor(ServingModule):
    """Text (or a pair) to a number.

    Outputs of `serving_default` and `ids`: `score` float32 [N], in the unit of the training labels.

    Example:
        module = ServedRegressor(Regressor(encoder, mean=2.5, scale=1.5), tokenizer, sequence_length=32)
        module.answer_text(["a good film", "bad"])["score"]  # [2]
    """

    def answer(self, features):
        return self.bucketed_outputs(features, score=[])
