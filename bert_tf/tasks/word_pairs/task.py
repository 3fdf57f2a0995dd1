"""Two marked words: whether they have the same sense (WiC), or mean the same thing (WSC)."""

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks.texts.classification import ClassificationTask
from bert_tf.tasks.word_pairs.files import LABELS, examples_of, read_word_pairs, row_of
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
        train = task.examples([row, row], labels=["true", "false"])
        model = task.model(encoder)
        task.evaluate(model, train)["accuracy"]
        task.predict(model, [row])[0]["label"]
    """

    inferred = (*ClassificationTask.inferred, "spans")

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        if self.config.labels not in (None, LABELS):
            raise ConfigError("the labels of word_pair are false and true; remove task.labels")
        self.labels = LABELS

    def read_file(self, path, labelled):
        return self._checked(read_word_pairs(path, self.config.columns, labelled))

    def from_list(self, inputs):
        return self._checked(examples_of([row_of(given, f"input {n}") for n, given in enumerate(inputs)], False))

    def examples(self, rows, labels=None):
        """Examples from a list of dicts with the keys of WiC or WSC, and a list of "false" and "true", or None."""
        found = [row_of(row, f"example {number}") for number, row in enumerate(rows)]
        if labels is None:
            return self._checked(examples_of(found, False))
        found = [(*row[:-1], str(label).lower()) for row, label in zip(found, labels, strict=True)]
        examples = self._checked(examples_of(found, True))
        self.learn(examples)
        return examples

    def _checked(self, examples):
        pairs = examples.text_pairs is not None
        if self.pairs is None:
            self.pairs = pairs
        if len(examples) and self.pairs != pairs:
            wanted = "pairs of texts, as WiC" if self.pairs else "single texts, as WSC"
            raise DataError(
                f"this task was trained on {wanted}, and {examples.path} holds the other; give it such texts"
            )
        return examples

    def encode(self, examples):
        labels = None if examples.labels is None else self.label_array(examples)
        return encode_word_pairs(self.tokenizer, examples, labels, self.config.sequence_length)

    def needs_pooler(self, config):
        return self.config.pooling == "mean" and super().needs_pooler(config)

    def make_model(self, encoder):
        options = {"class_weights": self.class_weights, "label_smoothing": self.config.label_smoothing}
        options |= {"head": self.head_of(encoder.config), "pooling": self.config.pooling}
        return WordPairClassifier(encoder, len(LABELS), self.config.dropout, name="word_pair", **options)
