"""Question answering by spans of a context (Rajpurkar et al. 2016 and 2018; Devlin et al. 2019, sections 4.2 and 4.3)."""

import copy
import dataclasses
import re

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import describe
from bert_tf.parsing import brief
from bert_tf.reporting import findings
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.spans import scorer
from bert_tf.tasks.spans.decoding import CERTAIN, find_answers
from bert_tf.tasks.spans.files import open_questions, read_questions
from bert_tf.tasks.spans.heads import HEADS, published_head
from bert_tf.tasks.spans.model import SpanModel
from bert_tf.tasks.spans.window_sequences import encode_questions
from bert_tf.tasks.spans.windows import null_at_end
from bert_tf.tasks.task import SavedTask, Task
from bert_tf.tasks.texts.text_task import with_separators


@dataclasses.dataclass(frozen=True)
class SavedQuestionAnswering(SavedTask):
    """task.json of question answering; `impossible`, `head` and `threshold` of `QuestionAnsweringTask`."""

    impossible: bool | None = None
    head: str | None = None
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

    Attributes:
        impossible: whether questions may have no answer; None until it is known (from the config, or from the training
            file).
        head: the name of the head; None until there is a model.
        threshold: of `null_odds`, above which the answer is ""; None until there is a model.

    Example:
        task = QuestionAnsweringTask({"kind": "question_answering", "sequence_length": 32, "max_query_length": 8}, tokenizer)
        question = {"question": "the one in paris?", "context": "the film is in paris.", "answers": [("film", 4)]}
        train = task.read([question])
        model = task.model(encoder)
        task.evaluate(model, train)["f1"]
        task.predict(model, [("the one?", "a good film.")])[0]["answer"]
    """

    saved = SavedQuestionAnswering
    pooler = False
    inferred = (*Task.inferred, "context_mask", "start_mask", "start_positions", "end_positions", "answerable")

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        self.pairs, self.impossible = True, self.config.impossible_questions
        head = self.config.head.name
        self.head, self.threshold = None if head == "published" else head, self.config.null_threshold

    @property
    def head_kind(self):
        return "xlnet_spans" if self.head == "xlnet" else "spans"

    @property
    def metric(self):
        return self.config.metric or ("best_f1" if self.impossible else "f1")

    @property
    def test_metric(self):
        return self.metric.removeprefix("best_")

    def make_tokenizer(self, tokenizer):
        return with_separators(tokenizer, self.config.decoder.layout)

    def open(self, data, columns, labelled):
        return open_questions(data, columns, labelled, self.row_of), columns

    def row_of(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(text, str) for text in item):
            return dict(zip(("question", "context"), item))
        raise BadRow(f"it is {brief(item)}; it must be a pair (question, context)")

    def read_table(self, table, columns, labelled):
        return read_questions(table, columns, labelled)

    def learn(self, examples):
        impossible = [index for index, answers in enumerate(examples.labels) if answers.impossible]
        if self.impossible is None:
            self.impossible = bool(impossible)
        if impossible and not self.impossible:
            raise DataError(
                f"{examples.where(impossible[0])}: the question is impossible, as {len(impossible)} are, but the task has no "
                "impossible questions, as its training file had none; train with task.impossible_questions=true, or remove "
                "these questions"
            )

    def encode(self, examples):
        config = self.config
        return encode_questions(
            self.tokenizer, examples, config.sequence_length, config.max_query_length, config.stride
        )

    def make_model(self, encoder):
        if self.impossible is None:
            raise ConfigError(
                "whether questions may be impossible is not known yet; read the training file first, or set "
                "task.impossible_questions"
            )
        if self.head is None:
            self.head = published_head(describe(encoder.config)["family"], self.impossible)
        if self.threshold is None:
            self.threshold = HEADS[self.head].default_threshold
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

    def tuned(self, metrics):
        if not self.impossible or self.config.null_threshold is not None or "best_f1_threshold" not in metrics:
            return self
        result = copy.copy(self)
        # 0 of the scorer is "no answer" for all: the official one is written for probabilities, `null_odds` may be negative.
        result.threshold = metrics["best_f1_threshold"] or -CERTAIN
        return result

    def _found(self, examples, outputs):
        sequences, threshold = self.sequences(examples), self.threshold if self.impossible else None
        return find_answers(sequences, outputs, examples.text_pairs, self.config.n_best, self.null_alone, threshold)

    def scores(self, examples, outputs):
        found = self._found(examples, outputs)
        texts, odds = [one.text for one in found], [one.null_odds for one in found]
        scores = self._scores(examples, texts, odds)
        if "loss" in outputs[0]:  # not in those of a file in another format
            weights = self.sequences(examples).trained
            losses = np.array([output["loss"] for output in outputs], np.float64)
            scores = {"loss": float(np.sum(losses * weights) / max(weights.sum(), 1.0))} | scores
        answers = {one.text if one.answered else "" for one in found}
        if len(examples) > 1 and len(answers) == 1 and any(not a.impossible for a in examples.labels):
            scores |= {"collapsed": True, "warning": f"collapsed: every question is answered by {brief(min(answers))}"}
        return scores

    def _scores(self, examples, texts, odds):
        how, labels = self.config.scorer, examples.labels
        if self.impossible:
            scores = scorer.scores_with_impossible(labels, texts, odds, self.threshold or 0.0, how)
        else:
            scores = scorer.scores_without_impossible(labels, texts, how)
        return scores | {"examples": len(examples), "collapsed": False}

    def answers(self, examples, outputs):
        return [self._answer(one) for one in self._found(examples, outputs)]

    def _answer(self, found):
        scores = np.array(found.scores, np.float64)
        weights = np.exp(scores - scores.max()) if len(scores) else scores
        best = [
            {"text": text, "start": start, "end": end, "score": score, "probability": float(probability)}
            for text, start, end, score, probability in zip(
                found.texts, found.starts, found.ends, found.scores, weights / max(weights.sum(), 1e-9)
            )
        ]
        return {
            "answer": found.text if found.answered else "",
            "start": found.starts[0] if found.answered else None,
            "end": found.ends[0] if found.answered else None,
            "score": found.scores[0] if best else None,
            "null_score": found.null_score,
            "null_odds": found.null_odds,
            "n_best": best,
        }

    def deciding(self, answer):
        return {name: value for name, value in answer.items() if name != "n_best"}

    def findings(self, examples, outputs):
        """The questions without an exact match, with the predicted and the accepted answers marked in the context.

        The first have the most confident answers: of a text its probability among the n best, of "" that of no answer.
        Whether the answer is "" is decided by `threshold`; the dev file's is not tuned yet.
        """
        answers = self.answers(examples, outputs)
        texts = [answer["answer"] for answer in answers]
        exact, _ = scorer.raw_scores(examples.labels, texts, self.config.scorer, self.impossible)
        confidence = [_confidence(answer) for answer in answers]
        worst = findings.worst(exact < 1, confidence)
        return {
            "wrong": int(np.sum(exact < 1)),
            "errors": [self._error(examples, i, answers[i], confidence[i]) for i in worst],
        }

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

    def baselines(self, train, examples):
        """Metrics of answers without a model.

        Returns:
            {"closest sentence": of the context's sentences the one with most words of the question, "no answer": "" for
            every question, where questions may be impossible}.
        """
        sentences = [_closest_sentence(q, context) for q, context in zip(examples.texts, examples.text_pairs)]
        guesses = {"closest sentence": (sentences, -1e9)}
        if self.impossible:
            guesses["no answer"] = ([""] * len(examples), 1e9)
        return {
            name: {
                k: v for k, v in self._scores(examples, texts, [odds] * len(examples)).items() if isinstance(v, float)
            }
            for name, (texts, odds) in guesses.items()
        }


def _confidence(answer):
    if answer["answer"]:
        return answer["n_best"][0]["probability"]
    return float(1 / (1 + np.exp(-np.clip(answer["null_odds"], -700, 700))))


def _closest_sentence(question, context):
    words = set(re.findall(r"\w+", question.lower()))
    sentences = [s for s in re.split(r"(?<=[.!?。])\s+|\n+", context) if s.strip()] or [context]
    return max(sentences, key=lambda s: len(words.intersection(re.findall(r"\w+", s.lower()))))
