"""MultiRC: each answer to a question is right or wrong, and a question is right if all its answers are judged rightly.

Khashabi et al. 2018; Wang et al. 2019 (SuperGLUE), section 3.
"""

import dataclasses
import re

import numpy as np

from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.rows.opening import open_objects
from bert_tf.tasks.rows.values import BadRow, filled_text, member
from bert_tf.tasks.texts.classification import ClassificationTask

LABELS = ("0", "1")


class MultiRCTask(ClassificationTask):
    """Judges each answer to each question about a passage, as SuperGLUE's MultiRC asks it.

    The first text is the passage, the second the question with one answer, so that a passage that is too long loses its
    end and not the question. jiant puts the question at the end of the first text.

    `evaluate` gives the metrics of `ClassificationTask`, and `f1a`, the F1 of right answers over all answers, and
    `exact_match`, the fraction of the questions whose answers are all judged rightly. `predict` takes pairs
    (passage, question with an answer), or a file with "passage", "questions" and "answers" as SuperGLUE has them; the
    label "1" is a right answer.

    Example:
        task = MultiRCTask({"kind": "multirc", "sequence_length": 32}, tokenizer)
        pairs = [("is it good in paris", "1"), ("is it bad a one", "0")]
        pairs = task.read([{"text": "the film is in paris", "text_pair": pair, "label": label} for pair, label in pairs])
        task = task.learn(pairs)
        model = task.model(encoder)
        task.evaluate(model, pairs)["f1a"]
    """

    def first_state(self, backbone_config):
        return dataclasses.replace(super().first_state(backbone_config), labels=LABELS, pairs=True)

    def open(self, data, columns, labelled):
        return open_objects(data, columns, "multirc reads SuperGLUE's .jsonl files", self.row_of), columns

    def read_table(self, table, columns, labelled):
        rows = [(number, row and row | {"place": table.where(number)}) for number, row in table.rows]
        table = dataclasses.replace(table, rows=rows)
        return read_examples(table, lambda row: read_row(row, labelled), columns, labelled)

    def measure(self, examples, decided):
        scores = super().measure(examples, decided)
        right = self.label_array(examples) == np.argmax(decided["logits"], axis=-1)
        by_question = {}
        for question, hit in zip(examples.details, right):
            by_question[question] = by_question.get(question, True) and bool(hit)
        of_questions = {"f1a": scores["f1"], "exact_match": float(np.mean(list(by_question.values())))}
        return of_questions | scores | {"questions": len(by_question)}


def read_row(row, labelled):
    """The `Example` of each answer in a row of SuperGLUE's MultiRC, or of a pair (passage, question with an answer).

    `details` are equal for the answers of a question.

    Raises:
        BadRow: the row lacks a passage, a question, an answer or a label.
    """
    if "text_pair" in row:
        passage, pair = filled_text(row, "text"), filled_text(row, "text_pair")
        return [Example(passage, pair, label=_label(row) if labelled else None, details=(row["place"], 0))]
    passage, examples = member(row, "passage", dict), []
    text = _plain(member(passage, "text", str))
    for number, question in enumerate(member(passage, "questions", list)):
        words = _plain(member(question, "question", str))
        for answer in member(question, "answers", list):
            pair = f"{words} {_plain(member(answer, 'text', str))}"
            label, identifier = _label(answer) if labelled else None, {"id": answer.get("idx")}
            examples.append(Example(text, pair, label=label, id=identifier, details=(row["place"], number)))
    if not examples:
        raise BadRow("there is no answer to a question; add one, or remove the row")
    return examples


def _label(answer):
    label = str(answer.get("label"))
    if label not in LABELS:
        raise BadRow(f"the label of an answer is {brief(answer.get('label'))}; it must be 0 or 1, correct the row")
    return label


def _plain(text):
    """Without the marks <b>Sent 1: </b> and <br> of older files."""
    return re.sub(r"</?b>", "", text.replace("<br>", " "))
