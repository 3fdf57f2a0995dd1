"""Question answering by spans of a context (Rajpurkar et al. 2016 and 2018; Devlin et al. 2019, sections 4.2 and 4.3)."""

import dataclasses
import re

import numpy as np

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.models.families import describe
from bert_tf.parsing import brief
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.spans import scorer
from bert_tf.tasks.spans.decoding import CERTAIN, BestAnswers, find_answers
from bert_tf.tasks.spans.files import open_questions, read_questions
from bert_tf.tasks.spans.heads import HEADS, published_head
from bert_tf.tasks.spans.model import SpanModel
from bert_tf.tasks.spans.window_sequences import encode_questions
from bert_tf.tasks.spans.windows import null_at_end
from bert_tf.tasks.state import TaskState
from bert_tf.tasks.task import Task

_MARGIN = 1e-4  # of a threshold above the best score: predictions differ by rounding from batch to batch


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringState(TaskState):
    """The state of question answering.

    Attributes:
        family: of the model; it decides which head is the published one.
        impossible: whether questions may have no answer; None until it is known (from the config, or from the training
            file).
        threshold: of `null_odds`, above which the answer is "", as it was tuned; None for that of the config or of the
            head.
    """

    family: str = "bert"
    impossible: bool | None = None
    threshold: float | None = None


class QuestionAnsweringTask(Task):
    """Finds the span of a context that answers a question, or says that there is none.

    A context that does not fit beside its question is read in windows (`bert_tf.tasks.spans.windows`).

    `evaluate` gives `em` and `f1` as the official scorer, as fractions, and `loss` (a window). Where questions may be
    impossible, also `has_answer_em`, `has_answer_f1`, `no_answer_em` of the two kinds of questions, and with the best
    threshold of this file `best_em`, `best_f1` and their thresholds.

    `predict` gives {"answer", "start", "end", "score", "null_score", "null_odds", "n_best": [{"text", "start", "end",
    "score", "probability"}]}; `start` and `end` count characters of the context. "answer" is "" and "start" None where
    `null_odds` is above the threshold, and where no span is possible. `n_best` never has "", nor a text twice;
    probabilities are of these texts alone.

    Example:
        task = QuestionAnsweringTask({"kind": "question_answering", "sequence_length": 32, "max_query_length": 8}, tokenizer)
        question = {"question": "the one in paris?", "context": "the film is in paris.", "answers": [("film", 4)]}
        train = task.read([question])
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["f1"]
        task.predict(model, [("the one?", "a good film.")])[0]["answer"]
    """

    state_class = QuestionAnsweringState
    pooler = False
    inferred = (*Task.inferred, "context_mask", "start_mask", "start_positions", "end_positions", "answerable")

    def first_state(self, backbone_config):
        family = describe(backbone_config)["family"] if backbone_config else "bert"
        state, impossible = super().first_state(backbone_config), self.config.impossible_questions
        return dataclasses.replace(state, pairs=True, family=family, impossible=impossible)

    @property
    def head(self):
        """The name of the head of the model."""
        return self._head_on(self.state.family)

    def _head_on(self, family):
        name = self.config.head.name
        return published_head(family, self.state.impossible) if name == "published" else name

    @property
    def threshold(self):
        """Of `null_odds`, above which the answer is ""."""
        thresholds = (self.config.null_threshold, self.state.threshold, HEADS[self.head].default_threshold)
        return next(threshold for threshold in thresholds if threshold is not None)

    @property
    def head_kind(self):
        return "xlnet_spans" if self.head == "xlnet" else "spans"

    @property
    def metric(self):
        return self.config.metric or ("best_f1" if self.state.impossible else "f1")

    @property
    def test_metric(self):
        return self.metric.removeprefix("best_")

    def open(self, data, columns, labelled):
        return open_questions(data, columns, labelled, self.row_of), columns

    def row_of(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(text, str) for text in item):
            return dict(zip(("question", "context"), item))
        raise BadRow(f"it is {brief(item)}; it must be a pair (question, context)")

    def read_table(self, table, columns, labelled):
        return read_questions(table, columns, labelled)

    def learn_state(self, examples):
        if self.state.impossible is not None:
            return {}
        return {"impossible": any(answers.impossible for answers in examples.labels)}

    def check(self, examples):
        impossible = [index for index, answers in enumerate(examples.labels) if answers.impossible]
        if impossible and self.state.impossible is False:
            raise DataError(
                f"{examples.where(impossible[0])}: the question is impossible, as {len(impossible)} are, but the task has no "
                "impossible questions, as its training file had none; train with ",
                Advice("task.impossible_questions", "true"),
                ", or remove these questions",
            )

    def encode(self, examples):
        config = self.config
        settings = config.sequence_length, config.max_query_length, config.stride
        return encode_questions(self.tokenizer, examples, *settings)

    def make_model(self, encoder):
        if self.state.impossible is None:
            raise ConfigError(
                "whether questions may be impossible is not known yet; learn it with task = task.learn(examples) from the "
                "training examples, or set task.impossible_questions"
            )
        family = describe(encoder.config)["family"]
        if self.head != self._head_on(family):
            raise ConfigError(
                f"the task is for a model of the family {self.state.family}, and {type(encoder).__name__} has another "
                "published head; give build_task the model, as backbone=model, or set task.head.name"
            )
        config = self.config
        return SpanModel(
            encoder,
            self.head,
            n_best=config.n_best,
            beam=getattr(config.head, "beam", None),
            max_answer_length=config.max_answer_length,
            dropout=getattr(config.head, "dropout", None),
            at_end=null_at_end(self.tokenizer),
            features=config.frozen_features,
        )

    @property
    def null_alone(self):
        """Whether `null_odds` is the null score alone; see `SpanHead`."""
        return HEADS[self.head].null_alone

    def with_thresholds(self, scores):
        if not self.state.impossible or self.config.null_threshold is not None or "best_f1_threshold" not in scores:
            return self
        # 0 of the scorer is "no answer" for all: the official one is written for probabilities, `null_odds` may be negative.
        # The scorer's is the `null_odds` of one question, which in another batch differ by rounding.
        return self.with_state(threshold=(scores["best_f1_threshold"] or -CERTAIN) + _MARGIN)

    def decide(self, examples, outputs):
        """{"best": what `find_answers` returns, "loss": a mean over the windows that are trained on, if there are labels}."""
        sequences, threshold = self.sequences(examples), self.threshold if self.state.impossible else None
        contexts, n_best = examples.text_pairs, self.config.n_best
        decided = {"best": find_answers(sequences, outputs, contexts, n_best, self.null_alone, threshold)}
        if "loss" in outputs[0]:  # not in those of a file in another format
            losses = np.array([output["loss"] for output in outputs], np.float64)
            decided["loss"] = float(np.sum(losses * sequences.loss_weights) / max(sequences.loss_weights.sum(), 1.0))
        return decided

    def measure(self, examples, decided):
        best, how, labels = decided["best"], self.config.scorer, examples.labels
        texts, odds = [one.text for one in best], [one.null_odds for one in best]
        scores = {"loss": decided["loss"]} if "loss" in decided else {}
        if self.state.impossible:
            scores |= scorer.scores_with_impossible(labels, texts, odds, self.threshold, how)
        else:
            scores |= scorer.scores_without_impossible(labels, texts, how)
        answers = {one.text if one.answered else "" for one in best}
        is_collapsed = len(examples) > 1 and len(answers) == 1 and any(not a.impossible for a in labels)
        problem = f"every question is answered by {brief(min(answers))}"
        return scores | {"examples": len(examples)} | metrics.collapsed(is_collapsed, problem)

    def answers(self, examples, decided):
        return [self._answer(one) for one in decided["best"]]

    def _answer(self, best):
        scores = np.array(best.scores, np.float64)
        weights = np.exp(scores - scores.max()) if len(scores) else scores
        probabilities = (weights / max(weights.sum(), 1e-9)).tolist()
        columns = best.texts, best.starts, best.ends, best.scores, probabilities
        n_best = [dict(zip(("text", "start", "end", "score", "probability"), row)) for row in zip(*columns)]
        return {
            "answer": best.text if best.answered else "",
            "start": best.starts[0] if best.answered else None,
            "end": best.ends[0] if best.answered else None,
            "score": best.scores[0] if n_best else None,
            "null_score": best.null_score,
            "null_odds": best.null_odds,
            "n_best": n_best,
        }

    def deciding(self, answer):
        return {name: value for name, value in answer.items() if name != "n_best"}

    def findings(self, examples, decided):
        """The questions without an exact match, with the predicted and the accepted answers marked in the context.

        The first have the most confident answers: of a text its probability among the n best, of "" that of no answer.
        Whether the answer is "" is decided by `threshold`; the dev file's is not tuned yet.
        """
        answers = self.answers(examples, decided)
        texts = [answer["answer"] for answer in answers]
        accepted = [one.texts for one in examples.labels]
        exact, _ = scorer.raw_scores(accepted, texts, self.config.scorer, self.state.impossible)
        confidence = [_confidence(answer) for answer in answers]
        return findings.errors(exact < 1, confidence, lambda i: self._error(examples, i, answers[i], confidence[i]))

    def _error(self, examples, index, answer, confidence):
        accepted = examples.labels[index]
        marks = {(start, end, "missed", "true") for start, end in zip(accepted.starts, accepted.ends)}
        if answer["answer"]:
            marks.add((answer["start"], answer["end"], "wrong", "predicted"))
        return findings.error(
            examples,
            index,
            true=accepted.texts[0] if accepted.texts else "no answer",
            predicted=answer["answer"] or "no answer",
            confidence=confidence,
            text=examples.text_pairs[index],
            before=examples.texts[index],
            marks=marks,
        )

    def official(self, answers):
        return {str(answer.get("id", index)): answer.get("answer", "") for index, answer in enumerate(answers)}

    def guesses(self, train, examples):
        """{"closest sentence": of the context's sentences the one with most words of the question, "no answer": "" for
        every question, where questions may be impossible}.
        """
        sentences = [_closest_sentence(q, context) for q, context in zip(examples.texts, examples.text_pairs)]
        guesses = {"closest sentence": {"best": [BestAnswers.guess(text) for text in sentences]}}
        if self.state.impossible:
            guesses["no answer"] = {"best": [BestAnswers.guess("")] * len(examples)}
        return guesses


def _confidence(answer):
    if answer["answer"]:
        return answer["n_best"][0]["probability"]
    return float(1 / (1 + np.exp(-np.clip(answer["null_odds"], -700, 700))))


def _closest_sentence(question, context):
    words = set(re.findall(r"\w+", question.lower()))
    sentences = [s for s in re.split(r"(?<=[.!?。])\s+|\n+", context) if s.strip()] or [context]
    return max(sentences, key=lambda s: len(words.intersection(re.findall(r"\w+", s.lower()))))
