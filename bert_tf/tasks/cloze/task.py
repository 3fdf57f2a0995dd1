"""ReCoRD: which of the entities of a passage fills the placeholder of a query.

Zhang et al. 2018; Wang et al. 2019 (SuperGLUE), sections 3 and 4.1.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks import findings, metrics
from bert_tf.tasks.cloze.files import PLACEHOLDER, read_row
from bert_tf.tasks.examples import read_examples
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.rows.opening import open_objects
from bert_tf.tasks.rows.values import json_row
from bert_tf.tasks.sequences import Sequences, gather, packed_lengths, tokenize
from bert_tf.tasks.spans.scorer import raw_scores
from bert_tf.tasks.task import Task


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

    `evaluate` gives `loss` (nats a row), and `f1` and `em` of the answers as ReCoRD's official scorer, as fractions: its
    `evaluation.py` has the formulas of SQuAD 1.1.
    `predict` takes dicts with "passage", "query" and "entities" (a list of str), the same as JSON in a str, or a file
    of ReCoRD. It gives {"answer": str, "probability": float, "probabilities": {entity: float}}; these do not add up to
    1.

    Example:
        task = ReCoRDTask({"kind": "record", "sequence_length": 32}, tokenizer)
        query = {"passage": "a film in paris", "query": "the one is in @placeholder", "entities": ["paris", "film"]}
        train = task.read([query | {"answers": ["paris"]}])
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["f1"]
        task.predict(model, [query])[0]["answer"]
    """

    def first_state(self, backbone_config):
        return dataclasses.replace(super().first_state(backbone_config), pairs=True)

    # -- data ------------------------------------------------------------------------------------

    def row_of(self, item):
        return json_row(item, "'passage', 'query' and 'entities'")

    def open(self, data, columns, labelled):
        return open_objects(data, columns, "record reads ReCoRD's .jsonl files", self.row_of), columns

    def read_table(self, table, columns, labelled):
        return read_examples(table, lambda row: read_row(row, labelled), columns, labelled)

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
        lengths = first.row_lengths().numpy()[passages], second.row_lengths().numpy()
        lengths = packed_lengths(self.tokenizer.layout, self.config.sequence_length, *lengths)
        labels = None if examples.labels is None else np.array(labels, np.int32)
        return ReCoRDSequences(first, second, lengths, labels, passages=passages, owners=owners)

    def make_model(self, encoder):
        return Classifier(encoder, 2, self.config.head.dropout, head=self.head_of(encoder.config), name="record")

    # -- results ---------------------------------------------------------------------------------

    def decide(self, examples, outputs):
        """The answer to each query, and the logits of all rows."""
        rows = super().decide(examples, outputs)
        scores = rows["logits"][:, 1] - rows["logits"][:, 0]  # not tied where probabilities are
        splits = np.searchsorted(self.sequences(examples).owners, np.arange(len(examples) + 1))
        answers = []
        for candidates, start, end in zip(examples.details, splits, splits[1:]):
            chosen, each = int(np.argmax(scores[start:end])), [float(p) for p in rows["probabilities"][start:end, 1]]
            answer = {"answer": candidates.texts[chosen], "probability": each[chosen]}
            answers.append(answer | {"probabilities": dict(zip(candidates.texts, each))})
        return {"answers": answers, "logits": rows["logits"]}

    def measure(self, examples, decided):
        scores = {}
        if "logits" in decided:
            scores["loss"] = metrics.cross_entropy(self.sequences(examples).labels, decided["logits"])
        em, f1 = raw_scores(examples.labels, [answer["answer"] for answer in decided["answers"]])
        scores |= {"f1": float(f1.mean()), "em": float(em.mean())}
        return scores | {"examples": len(examples), "collapsed": False}

    def answers(self, examples, decided):
        return decided["answers"]

    def findings(self, examples, decided):
        """The calibration of the answers, and the most confident errors."""
        answers, confidence = zip(*((answer["answer"], answer["probability"]) for answer in decided["answers"]))
        wrong = raw_scores(examples.labels, answers)[0] == 0

        def error(i):
            accepted = " / ".join(dict.fromkeys(examples.labels[i]))
            return findings.error(examples, i, accepted, answers[i], confidence[i])

        return {"calibration": findings.calibration(confidence, ~wrong)} | findings.errors(wrong, confidence, error)

    def guesses(self, train, examples):
        """{"most mentioned entity": the entity that each passage marks most often; of equals the first}."""
        answers = [{"answer": one.texts[int(np.argmax(one.mentions))]} for one in examples.details]
        return {"most mentioned entity": {"answers": answers}}
