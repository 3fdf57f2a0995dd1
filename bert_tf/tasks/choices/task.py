"""Multiple choice: which of several options answers a question or continues a text."""

import dataclasses

import numpy as np

from bert_tf.errors import ConfigError
from bert_tf.reporting import findings
from bert_tf.tasks import metrics
from bert_tf.tasks.choices.choice_sequences import encode_questions
from bert_tf.tasks.choices.model import MultipleChoice
from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tasks.choices.reading import open_questions, read_questions
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.rows.values import json_row
from bert_tf.tasks.task import SavedTask, Task
from bert_tf.tasks.texts.text_task import with_separators


@dataclasses.dataclass(frozen=True)
class SavedChoices(SavedTask):
    """task.json of multiple choice; `question_joins` and `blank` of `MultipleChoiceTask`."""

    question_joins: str | None = None
    blank: str | None = None


class MultipleChoiceTask(Task):
    """One of the options of each question.

    `evaluate` gives `loss` (mean cross-entropy over the options, nats) and `accuracy`; for RACE also `accuracy_middle`
    and `accuracy_high`, where both are in the file.

    `predict` gives {"label": int, "answer": str, "probability": float, "probabilities": [float]}: the number of the
    option from 0, its text, and the probabilities of all options; with "letter" where the file letters its options. It
    takes dicts with "options" and "context" or "question", the same as JSON in a str, or pairs (context, options).

    Attributes:
        question_joins, blank: of `MultipleChoiceConfig`; where they are not set, those of the first file that is read.

    Example:
        task = MultipleChoiceTask({"kind": "multiple_choice", "sequence_length": 32}, tokenizer)
        films = [("the film is a", ["good one", "paris"]), ("the one in", ["bad", "paris", "film"])]
        train = task.read([dict(zip(("context", "options", "label"), (*film, n))) for n, film in enumerate(films)])
        model = task.model(encoder)
        task.evaluate(model, train)["accuracy"]
        task.predict(model, films)[0]["answer"]
    """

    saved = SavedChoices
    head_kind = "choices"
    inferred = (*INPUTS, "option_mask")

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        self.question_joins, self.blank = self.config.question_joins, self.config.blank
        if self.question_joins is None and self.tokenizer.layout_name == "gpt1":
            self.question_joins = "context"
        self.rows.check(self.tokenizer.layout, self.config.sequence_length)

    def make_tokenizer(self, tokenizer):
        return with_separators(tokenizer, self.config.decoder.layout)

    @property
    def rows(self):
        """The `OptionRows` of the settings."""
        settings = {
            name: getattr(self.config, name) for name in ("order", "context_length", "option_length", "option_kept")
        }
        return OptionRows(self.question_joins or "option", self.blank or "", **settings)

    # -- data ------------------------------------------------------------------------------------

    def row_of(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return {"context": item[0], "options": item[1]}
        return json_row(item, "'options' and 'context' or 'question'")

    def open(self, data, columns, labelled):
        return open_questions(data, self.config, columns, self.row_of), columns

    def read_table(self, table, columns, labelled):
        if labelled or table.is_file:
            self.question_joins = self.question_joins or table.data_set.question_joins
            self.blank = table.data_set.blank if self.blank is None else self.blank
        return read_questions(table, columns, labelled)

    def learn(self, examples):
        """Nothing is left open: the options are those of each question."""
        groups = {question.group for question in examples.details}
        if self.metric != "accuracy" and not {"middle", "high"} <= groups:
            raise ConfigError(
                f"task.metric={self.metric} needs RACE's questions of middle and high schools, and {examples.path} lacks "
                "one of them; set task.metric=accuracy"
            )

    def encode(self, examples):
        labels = None if examples.labels is None else np.array(examples.labels, np.int32)
        return encode_questions(self.tokenizer, examples.details, labels, self.rows, self.config.sequence_length)

    def make_model(self, encoder):
        options = {"head": self.head_of(encoder.config), "lm_weight": self.config.decoder.lm_weight}
        return MultipleChoice(encoder, dropout=self.config.head.dropout, name="multiple_choice", **options)

    # -- results ---------------------------------------------------------------------------------

    def scores(self, examples, outputs):
        logits = [output["logits"][: len(q.options)] for q, output in zip(examples.details, outputs)]
        return self._scores_of_choices(examples, [int(np.argmax(x)) for x in logits], logits)

    def _scores_of_choices(self, examples, chosen, logits=None):
        """Metrics of chosen options, and of logits (arrays of the numbers of options) where there are any."""
        labels, chosen = np.array(examples.labels), np.array(chosen)
        scores = {"accuracy": metrics.accuracy(labels, chosen)}
        if logits is not None:
            losses = [-metrics.log_softmax(x)[label] for x, label in zip(logits, labels)]
            scores = {"loss": float(np.mean(losses))} | scores
        groups = np.array([question.group or "" for question in examples.details])
        names = sorted({*groups} - {""})
        for name in names if len(names) > 1 else ():
            scores[f"accuracy_{name}"] = metrics.accuracy(labels[groups == name], chosen[groups == name])
        positions = [f"option {number}" for number in range(max(len(q.options) for q in examples.details))]
        return scores | {"examples": len(labels)} | metrics.collapse(labels, chosen, positions, what="question")

    def answers(self, examples, outputs):
        answers = []
        for question, output in zip(examples.details, outputs):
            probabilities = [float(p) for p in output["probabilities"][: len(question.options)]]
            best = int(np.argmax(output["logits"]))
            answer = {"label": best, "answer": question.options[best]}
            if question.letters:
                answer["letter"] = question.letters[best]
            answers.append(answer | {"probability": probabilities[best], "probabilities": probabilities})
        return answers

    def findings(self, examples, outputs):
        """The calibration, and the most confident errors with the chosen and the right option marked."""
        answers, labels = self.answers(examples, outputs), np.array(examples.labels)
        confidence = np.array([answer["probability"] for answer in answers])
        wrong = labels != [answer["label"] for answer in answers]
        return {
            "calibration": findings.calibration(confidence, ~wrong),
            "wrong": int(wrong.sum()),
            "errors": [
                self._error(examples, i, answers[i]["label"], answers[i]["probability"])
                for i in findings.worst(wrong, confidence)
            ],
        }

    def _error(self, examples, index, chosen, confidence):
        """The `findings.error` of a question: one option a line."""
        text, marks, right = "", [], examples.labels[index]
        for number, option in enumerate(examples.details[index].options):
            text += "\n" if text else ""
            if number in (chosen, right):
                verdict, label = ("wrong", "chosen") if number == chosen else ("missed", "right")
                marks.append((len(text), len(text) + len(option), verdict, label))
            text += option
        before = examples.texts[index]
        return findings.error(examples, index, confidence=confidence, text=text, before=before, marks=marks)

    def baselines(self, train, examples):
        """Metrics of two rules without a model.

        Returns:
            {"most frequent position": the option whose number is most often right in `train`, of those that a question
            has; "longest option": the one with the most characters}.
        """
        counts = np.bincount(train.labels, minlength=max(len(q.options) for q in examples.details)) + 1.0
        frequencies = [np.log(counts[: len(question.options)]) for question in examples.details]
        often = self._scores_of_choices(examples, [int(np.argmax(x)) for x in frequencies], frequencies)
        longest = [int(np.argmax([len(option) for option in question.options])) for question in examples.details]
        return {
            "most frequent position": metrics.without_warning(often),
            "longest option": metrics.without_warning(self._scores_of_choices(examples, longest)),
        }
