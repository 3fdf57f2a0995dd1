"""Two marked words: whether they have the same sense (WiC), or mean the same thing (WSC)."""

import dataclasses

from bert_tf.errors import DataError
from bert_tf.tasks.rows.opening import open_objects
from bert_tf.tasks.rows.values import json_row
from bert_tf.tasks.texts.classification import ClassificationTask
from bert_tf.tasks.word_pairs.files import LABELS, read_word_pairs
from bert_tf.tasks.word_pairs.model import WordPairClassifier
from bert_tf.tasks.word_pairs.sequences import encode_word_pairs


class WordPairTask(ClassificationTask):
    """Says of two marked words whether something holds of them: SuperGLUE's WiC and WSC.

    WiC (Pilehvar and Camacho-Collados 2019) marks a word in each of two sentences, which has the same sense in both or
    not. WSC (Levesque et al. 2012) marks a noun phrase and a pronoun in one text, which refers to it or not.

    `evaluate` and `predict` give what `ClassificationTask` gives; the labels are "false" and "true". `predict` takes
    dicts with the keys of the files, or the same as JSON in a str.

    Example:
        task = WordPairTask({"kind": "word_pair", "sequence_length": 32}, tokenizer)
        row = {"sentence1": "a good film", "start1": 7, "end1": 11, "sentence2": "bad film", "start2": 4, "end2": 8}
        train = task.read([row | {"label": "true"}, row | {"label": "false"}])
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["accuracy"]
        task.predict(model, [row])[0]["label"]
    """

    inferred = (*ClassificationTask.inferred, "spans")

    def first_state(self, backbone_config):
        return dataclasses.replace(super().first_state(backbone_config), labels=LABELS)

    def row_of(self, item):
        return json_row(item, "the keys of WiC or WSC")

    def open(self, data, columns, labelled):
        return open_objects(data, columns, "word_pair reads the .jsonl files of WiC and WSC", self.row_of), columns

    def read_table(self, table, columns, labelled):
        examples = read_word_pairs(table, columns, labelled)
        if len(examples) and self.pairs not in (None, examples.text_pairs is not None):
            trained_on = "pairs of texts, as WiC" if self.pairs else "single texts, as WSC"
            raise DataError(
                f"this task was trained on {trained_on}, and {examples.path} holds the other; give it such texts"
            )
        return examples

    def encode(self, examples):
        labels = None if examples.labels is None else self.label_array(examples)
        return encode_word_pairs(self.tokenizer, examples, labels, self.config.sequence_length)

    def needs_pooler(self, config):
        return self.config.pooling == "mean" and super().needs_pooler(config)

    def make_model(self, encoder):
        options = self.loss_options() | {"head": self.head_of(encoder.config), "pooling": self.config.pooling}
        return WordPairClassifier(encoder, len(LABELS), self.config.head.dropout, name="word_pair", **options)
