"""Multiple choice: which of several options answers a question or continues a text."""

import dataclasses

import numpy as np

from bert_tf.errors import Advice, ConfigError
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.choices.choice_sequences import encode_questions
from bert_tf.tasks.choices.model import MultipleChoice
from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tasks.choices.reading import open_questions, read_questions
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.rows.values import json_row
from bert_tf.tasks.state import TaskState
from bert_tf.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class ChoicesState(TaskState):
    """The state of multiple choice.

    Attributes:
        question_joins, blank: of `MultipleChoiceConfig`; where they are not set, those of the training file.
    """

    question_joins: str | None = None
    blank: str | None = None


class MultipleChoiceTask(Task):
    """One of the options of each question.

    `evaluate` gives `loss` (mean cross-entropy over the options, nats) and `accuracy`; for RACE also `accuracy_middle`
    and `accuracy_high`, where both are in the file.

    `predict` gives {"label": int, "answer": str, "probability": float, "probabilities": [float]}: the number of the
    option from 0, its text, and the probabilities of all options; with "letter" where the file letters its options. It
    takes dicts with "options" and "context" or "question", the same as JSON in a str, or pairs (context, options).

    Example:
        task = MultipleChoiceTask({"kind": "multiple_choice", "sequence_length": 32}, tokenizer)
        films = [("the film is a", ["good one", "paris"]), ("the one in", ["bad", "paris", "film"])]
        train = task.read([dict(zip(("context", "options", "label"), (*film, n))) for n, film in enumerate(films)])
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["accuracy"]
        task.predict(model, films)[0]["answer"]
    """

    state_class = ChoicesState
    head_kind = "choices"
    inferred = (*INPUTS, "option_mask")

    def check_settings(self):
        self.rows.check(self.tokenizer.layout, self.config.sequence_length)

    def first_state(self, backbone_config):
        joins = self.config.question_joins
        if joins is None and self.tokenizer.layout_name == "gpt1":
            joins = "context"
        state = super().first_state(backbone_config)
        return dataclasses.replace(state, question_joins=joins, blank=self.config.blank)

    @property
    def rows(self):
        """The `OptionRows` of the settings."""
        return self._rows(self.state)

    def _rows(self, state):
        names = ("order", "context_length", "option_length", "option_kept")
        settings = {name: getattr(self.config, name) for name in names}
        return OptionRows(state.question_joins or "option", state.blank or "", **settings)

    # -- data ------------------------------------------------------------------------------------

    def row_of(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return {"context": item[0], "options": item[1]}
        return json_row(item, "'options' and 'context' or 'question'")

    def open(self, data, columns, labelled):
        return open_questions(data, self.config, columns, self.row_of), columns

    def read_table(self, table, columns, labelled):
        examples = read_questions(table, columns, labelled)
        if labelled or table.is_file:
            data_set = {"question_joins": table.data_set.question_joins, "blank": table.data_set.blank}
            examples = dataclasses.replace(examples, traits=data_set)
        return examples

    def learn_state(self, examples):
        settings = {name: getattr(self.state, name) for name in ("question_joins", "blank")}
        return {name: examples.traits.get(name) if value is None else value for name, value in settings.items()}

    def check(self, examples):
        groups = {question.group for question in examples.details}
        if self.metric != "accuracy" and not {"middle", "high"} <= groups:
            raise ConfigError(
                f"task.metric={self.metric} needs RACE's questions of middle and high schools, and {examples.path} lacks "
                "one of them; set ",
                Advice("task.metric", "accuracy"),
            )

    def encode(self, examples):
        labels = None if examples.labels is None else np.array(examples.labels, np.int32)
        rows = self._rows(dataclasses.replace(self.state, **self.learn_state(examples)))
        return encode_questions(self.tokenizer, examples.details, labels, rows, self.config.sequence_length)

    def make_model(self, encoder):
        options = {"head": self.head_of(encoder.config), "lm_weight": self.config.decoder.lm_weight}
        return MultipleChoice(encoder, dropout=self.config.head.dropout, name="multiple_choice", **options)

    # -- results ---------------------------------------------------------------------------------

    def decide(self, examples, outputs):
        """For each question {"chosen": int, "logits" and "probabilities" of its options}."""
        decided = []
        for question, output in zip(examples.details, outputs):
            of_options = {name: output[name][: len(question.options)] for name in ("logits", "probabilities")}
            decided.append({"chosen": int(np.argmax(of_options["logits"]))} | of_options)
        return decided

    def measure(self, examples, decided):
        labels, chosen = np.array(examples.labels), np.array([one["chosen"] for one in decided])
        scores = {"accuracy": metrics.accuracy(labels, chosen)}
        if "logits" in decided[0]:
            losses = [-metrics.log_softmax(one["logits"])[label] for one, label in zip(decided, labels)]
            scores = {"loss": float(np.mean(losses))} | scores
        groups = np.array([question.group or "" for question in examples.details])
        names = sorted({*groups} - {""})
        for name in names if len(names) > 1 else ():
            scores[f"accuracy_{name}"] = metrics.accuracy(labels[groups == name], chosen[groups == name])
        positions = [f"option {number}" for number in range(max(len(q.options) for q in examples.details))]
        return scores | {"examples": len(labels)} | metrics.collapse(labels, chosen, positions, what="question")

    def answers(self, examples, decided):
        answers = []
        for question, one in zip(examples.details, decided):
            best, probabilities = one["chosen"], [float(p) for p in one["probabilities"]]
            answer = {"label": best, "answer": question.options[best]}
            if question.letters:
                answer["letter"] = question.letters[best]
            answers.append(answer | {"probability": probabilities[best], "probabilities": probabilities})
        return answers

    def findings(self, examples, decided):
        """The calibration, and the most confident errors with the chosen and the right option marked."""
        chosen = np.array([one["chosen"] for one in decided])
        confidence = np.array([float(one["probabilities"][one["chosen"]]) for one in decided])
        wrong = np.array(examples.labels) != chosen

        def error(i):
            return self._error(examples, i, int(chosen[i]), float(confidence[i]))

        return {"calibration": findings.calibration(confidence, ~wrong)} | findings.errors(wrong, confidence, error)

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

    def guesses(self, train, examples):
        """Two rules without a model.

        Returns:
            {"most frequent position": the option whose number is most often right in `train`, of those that a question
            has; "longest option": the one with the most characters}.
        """
        counts = np.bincount(train.labels, minlength=max(len(q.options) for q in examples.details)) + 1.0
        frequencies = [np.log(counts[: len(question.options)]) for question in examples.details]
        lengths = [[len(option) for option in question.options] for question in examples.details]
        return {
            "most frequent position": [{"chosen": int(np.argmax(x)), "logits": x} for x in frequencies],
            "longest option": [{"chosen": int(np.argmax(x))} for x in lengths],
        }
