"""MultiRC: each answer to a question is right or wrong, and a question is right if all its answers are judged rightly.

Khashabi et al. 2018; Wang et al. 2019 (SuperGLUE), section 3.
"""

import re

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.tables.files import member, read_objects
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
        pairs = task.examples(["the film is in paris"] * 2, ["is it good in paris", "is it bad a one"], ["1", "0"])
        model = task.model(encoder)
        task.evaluate(model, pairs)["f1a"]
    """

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        if self.config.labels not in (None, LABELS):
            raise ConfigError("the labels of MultiRC are 0 and 1; remove task.labels")
        self.labels, self.pairs = LABELS, True

    def read_file(self, path, labelled):
        return read_multirc(path, self.config.columns, labelled)

    def _scores_of_logits(self, examples, logits):
        scores = super()._scores_of_logits(examples, logits)
        right = self.label_array(examples) == np.argmax(logits, axis=-1)
        # Examples from Python are each a question of their own.
        questions = examples.details or range(len(examples))
        by_question = {}
        for question, hit in zip(questions, right):
            by_question[question] = by_question.get(question, True) and bool(hit)
        own = {"f1a": scores["f1"], "exact_match": float(np.mean(list(by_question.values())))}
        return own | scores | {"questions": len(by_question)}


def read_multirc(path, columns, labelled):
    """`Examples` of SuperGLUE's MultiRC, one for each answer; `details` are equal for the answers of a question.

    Raises:
        DataError: as `read_objects`; a row that lacks a passage, a question, an answer or a label.
    """

    def read(row, where):
        """(passage, question with the answer, label, id, question) of each answer."""
        passage, found = member(row, "passage", dict, where), []
        text = _plain(member(passage, "text", str, where))
        for number, question in enumerate(member(passage, "questions", list, where)):
            asked = _plain(member(question, "question", str, where))
            for answer in member(question, "answers", list, where):
                pair = f"{asked} {_plain(member(answer, 'text', str, where))}"
                label = _label(answer, where) if labelled else None
                found.append((text, pair, label, {"id": answer.get("idx")}, (where, number)))
        return found

    found, about = read_objects(path, columns, "multirc reads SuperGLUE's .jsonl files", read)
    if not found:
        raise DataError(f"{path} holds no answer to a question; it must hold one at least")
    texts, pairs, labels, ids, details = map(list, zip(*found))
    return Examples(
        texts=texts, text_pairs=pairs, labels=labels if labelled else None, ids=ids, details=details, **about
    )


def _label(answer, where):
    label = str(answer.get("label"))
    if label not in LABELS:
        raise DataError(f"{where}: the label of an answer is {brief(answer.get('label'))}; it must be 0 or 1")
    return label


def _plain(text):
    """Without the marks <b>Sent 1: </b> and <br> of older files."""
    return re.sub(r"</?b>", "", text.replace("<br>", " "))
