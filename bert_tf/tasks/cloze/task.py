"""ReCoRD: which of the entities of a passage fills the placeholder of a query.

Zhang et al. 2018; Wang et al. 2019 (SuperGLUE), sections 3 and 4.1.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks import findings, metrics
from bert_tf.tasks.cloze.files import PLACEHOLDER, read_row, scores_of
from bert_tf.tasks.examples import read_examples
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.rows.opening import open_objects
from bert_tf.tasks.rows.values import json_row
from bert_tf.tasks.sequences import Sequences, gather, tokenize
from bert_tf.tasks.task import Task
from bert_tf.tasks.texts.text_task import with_separators


@dataclasses.dataclass(frozen=True, eq=False)
class ReCoRDSequences(Sequences):
    """A row for each candidate of each query: `first` are the P distinct passages, `second` [R, None] the filled queries.

    Attributes:
        passages: int32 [R], the passage of each row.
        owners: int32 [R], the example of each row, ascending.
    """

    passages: np.ndarray | None = None
    owners: np.ndarray | None = None

    def texts_of(self, chosen):
        return gather(self.first, tf.gather(self.passages, chosen)), gather(self.second, chosen)


class ReCoRDTask(Task):
    """Chooses the entity of a passage that fills the placeholder of a query.

    As SuperGLUE's baseline (jiant 1.2.1, `ReCoRDTask` in `tasks/qa.py`) it judges each entity by itself: a row is the
    passage and the query with the entity in the place of the placeholder, trained on whether the entity is an accepted
    answer, with all wrong entities. The entity with the highest probability is the answer. jiant has a row for each
    mention of an entity; here entities with the same text have one row, which gives the same answers in a fraction of
    the time, and mentions do not weigh in training. A passage that is too long loses its end.

    `evaluate` gives `loss` (nats a row), and `f1` and `em` of the answers as ReCoRD's official scorer, as fractions.
    `predict` takes dicts with "passage", "query" and "entities" (a list of str), the same as JSON in a str, or a file
    of ReCoRD. It gives {"answer": str, "probability": float, "probabilities": {entity: float}}; these do not add up to
    1.

    Example:
        task = ReCoRDTask({"kind": "record", "sequence_length": 32}, tokenizer)
        query = {"passage": "a film in paris", "query": "the one is in @placeholder", "entities": ["paris", "film"]}
        train = task.read([query | {"answers": ["paris"]}])
        model = task.model(encoder)
        task.evaluate(model, train)["f1"]
        task.predict(model, [query])[0]["answer"]
    """

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        self.pairs = True

    def make_tokenizer(self, tokenizer):
        return with_separators(tokenizer, self.config.decoder.layout)

    # -- data ------------------------------------------------------------------------------------

    def row_of(self, item):
        return json_row(item, "'passage', 'query' and 'entities'")

    def open(self, data, columns, labelled):
        return open_objects(data, columns, "record reads ReCoRD's .jsonl files", self.row_of), columns

    def read_table(self, table, columns, labelled):
        return read_examples(table, lambda row: read_row(row, labelled), columns, labelled)

    def learn(self, examples):
        """Nothing is left open: each passage has its entities."""

    def encode(self, examples):
        numbers, rows = {}, []  # a row: (passage, example, filled query, whether the entity is an answer)
        for index, (passage, query) in enumerate(zip(examples.texts, examples.text_pairs)):
            number = numbers.setdefault(passage, len(numbers))
            answers = () if examples.labels is None else examples.labels[index]
            for entity in examples.details[index].texts:
                rows.append((number, index, query.replace(PLACEHOLDER, entity), entity in answers))
        passages, owners, queries, labels = zip(*rows)
        first, second = tokenize(self.tokenizer, list(numbers)), tokenize(self.tokenizer, list(queries))
        passages, owners = np.array(passages, np.int32), np.array(owners, np.int32)
        lengths = first.row_lengths().numpy()[passages] + second.row_lengths().numpy()
        lengths = np.minimum(lengths + self.tokenizer.layout.special_tokens_per_pair, self.config.sequence_length)
        labels = None if examples.labels is None else np.array(labels, np.int32)
        return ReCoRDSequences(first, second, lengths, labels, passages=passages, owners=owners)

    def make_model(self, encoder):
        return Classifier(encoder, 2, self.config.head.dropout, head=self.head_of(encoder.config), name="record")

    # -- results ---------------------------------------------------------------------------------

    def scores(self, examples, outputs):
        logits = np.stack([output["logits"] for output in outputs])
        loss = metrics.cross_entropy(self.sequences(examples).labels, logits)
        return {"loss": loss} | self._scores_of_answers(examples, [text for text, *_ in self._best(examples, outputs)])

    def _scores_of_answers(self, examples, answers):
        exact, similar = scores_of(answers, examples.labels)
        means = {"f1": float(np.mean(similar)), "em": float(np.mean(exact))}
        return means | {"examples": len(examples), "collapsed": False}

    def _best(self, examples, outputs):
        """(answer, its probability, the probabilities of all its candidates) of each example."""
        probabilities = np.stack([output["probabilities"] for output in outputs])[:, 1]
        logits = np.stack([output["logits"] for output in outputs])
        scores, best = logits[:, 1] - logits[:, 0], []  # not tied where probabilities are
        splits = np.searchsorted(self.sequences(examples).owners, np.arange(len(examples) + 1))
        for candidates, start, end in zip(examples.details, splits, splits[1:]):
            chosen = int(np.argmax(scores[start:end]))
            each = [float(p) for p in probabilities[start:end]]
            best.append((candidates.texts[chosen], each[chosen], each))
        return best

    def answers(self, examples, outputs):
        return [
            {"answer": text, "probability": probability, "probabilities": dict(zip(candidates.texts, each))}
            for candidates, (text, probability, each) in zip(examples.details, self._best(examples, outputs))
        ]

    def findings(self, examples, outputs):
        """The calibration of the answers, and the most confident errors."""
        answers, confidence, _ = zip(*self._best(examples, outputs))
        wrong = np.array(scores_of(answers, examples.labels)[0]) == 0
        return {
            "calibration": findings.calibration(confidence, ~wrong),
            "wrong": int(wrong.sum()),
            "errors": [
                findings.error(examples, i, " / ".join(dict.fromkeys(examples.labels[i])), answers[i], confidence[i])
                for i in findings.worst(wrong, confidence)
            ],
        }

    def baselines(self, train, examples):
        """{"most mentioned entity": metrics} of the entity that each passage marks most often; of equals the first."""
        answers = [one.texts[int(np.argmax(one.mentions))] for one in examples.details]
        return {"most mentioned entity": metrics.without_warning(self._scores_of_answers(examples, answers))}
