"""Text to text: one text is read and another is written (Raffel et al. 2020)."""

import dataclasses
import functools

import numpy as np

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.generation import Restrictions, StopStrings
from bert_tf.parsing import brief
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.rows.labels import no_label, not_in_label_set
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.task import Task
from bert_tf.tasks.text_to_text import text_metrics
from bert_tf.tasks.text_to_text.files import open_texts, read_format, read_sources, source_row
from bert_tf.tasks.text_to_text.model import TextToTextModel
from bert_tf.tasks.text_to_text.sequences import encode_pairs
from bert_tf.tasks.text_to_text.t5_formats import UNKNOWN, class_of, glue_row, t5_format
from bert_tf.tokenizers.frame import Frame


class TextToTextTask(Task):
    """A target text for each source text, on an encoder-decoder (T5) or a decoder (GPT).

    `evaluate` gives `loss` (nats a token of the targets) and `token_accuracy`, both with the true target before each
    token; and of the generated texts `exact_match`, and by what the targets are:

        labels (`task.labels`, or a format's): `accuracy`, `f1` (two labels, of the second), `f1_macro`, `matthews`,
            `unparsable` (texts that are not a label), for MultiRC `question_exact_match`
        numbers (STS-B): `pearson`, `spearman`, `unparsable`
        answers to questions: `answer_em`, `answer_f1`, the largest over the accepted answers
        free texts: `bleu` with `bleu_signature`, `rouge1`, `rouge2`, `rougeLsum`; see `TextToTextConfig.text_metrics`

    `predict` gives {"generated": str, "score": float, "finished": bool}, with labels also "label" (None for a text that
    is none), with `generation.n_best` above 1 also "n_best": [{"generated", "score", "finished"}]. It takes sources as
    str; with a format also rows of its files as dicts, and pairs for GLUE's. A str is then the format's only text, or a
    whole source where the format has several.

    Example:
        settings = {"kind": "text_to_text", "sequence_length": 16, "target_length": 8, "text_metrics": []}
        task = TextToTextTask(settings | {"generation": {"max_new_tokens": 8}}, tokenizer, backbone=gpt)
        train = task.read({"source": ["a good film", "a bad film"], "target": ["good", "bad"]})
        task = task.learn(train)
        model = task.model(gpt)
        task.evaluate(model, train)["exact_match"]
        task.predict(model, ["a good film"])[0]["generated"]
    """

    pooler, whole = False, True
    inferred = (*Task.inferred, "target_ids", "target_weights")

    def check_settings(self):
        if self.metric not in self._metric_names():
            raise ConfigError(
                f"task.metric={self.metric} is not measured here; choose one of {', '.join(self._metric_names())}"
            )

    def first_state(self, backbone_config):
        state = super().first_state(backbone_config)
        labels = self.format.labels if self.format and state.labels is None else state.labels
        return dataclasses.replace(state, labels=labels, pairs=False)

    @functools.cached_property
    def format(self):
        """The `T5Format` of the settings; None for any table."""
        return t5_format(self.config.format, self.config.languages) if self.config.format else None

    @property
    def judged_as(self):
        """What the targets are; a key of `text_metrics.SCORES`."""
        return self.format.judged_as if self.format else "labels" if self.labels else "texts"

    @property
    def metric(self):
        usual = self.format.metric if self.format else "accuracy" if self.labels else "token_accuracy"
        missing = usual in ("bleu", "rougeLsum") and usual not in self._metric_names()
        return self.config.metric or ("token_accuracy" if missing else usual)

    @property
    def text_metrics(self):
        """The names of TEXT_METRICS that are computed."""
        chosen = self.config.text_metrics
        return (("bleu", "rouge") if self.judged_as == "texts" else ()) if chosen is None else chosen

    def _metric_names(self):
        names = list(text_metrics.SCORES[self.judged_as])
        if self.judged_as == "labels":
            if self.config.format != "multirc":
                names.remove("question_exact_match")
            if len(self.labels) != 2:
                names.remove("f1")
        names += [n for chosen in self.text_metrics for n in text_metrics.TEXT_METRICS[chosen][1]]
        return ["token_accuracy", "exact_match", *names]

    @property
    def frame(self):
        """The `Frame` of sources and targets: single texts with an encoder-decoder, a pair of texts with a decoder.

        Raises:
            ConfigError: nothing stands at the end of a target.
        """
        make = Frame.for_answers_in_pairs if self.state.structure == "decoder" else Frame.for_answers
        frame = make(self.tokenizer)
        if frame.end is None:
            raise ConfigError(
                "the layout of the tokenizer has no token at the end of a text, so that a target would never end; set ",
                Advice("task.decoder.layout", "t5"),
                ", or ",
                Advice("task.decoder.layout", "gpt1"),
                " where the tokenizer has no separator",
            )
        return dataclasses.replace(frame, text_before=self.config.prefix or "")

    @property
    def stop_strings(self):
        """The `StopStrings` of `config.generation`."""
        ends = (*self.frame.stop_ids, self.tokenizer.pad_id)
        return StopStrings(self.config.generation.stop_strings, self.tokenizer, ends)

    # -- data ------------------------------------------------------------------------------------

    def open(self, data, columns, labelled):
        return open_texts(data, self.format, columns, labelled, self.row_of)

    def row_of(self, item):
        if isinstance(item, str):
            return source_row(self.format, item) if self.format else {"source": item}
        accepted = "a text or a row of its files" if self.format else "a text"
        if self.format and self.format.glue is not None and self.format.field is None:
            if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(t, str) for t in item):
                return glue_row(self.format.glue, *item)
            accepted = "a text, a pair of texts or a row of its files"
        raise BadRow(f"it is {brief(item)}; it must be {accepted}")

    def read_table(self, table, columns, labelled):
        if self.format is None:
            return read_sources(table, columns, labelled, self.labels or ())
        return read_format(table, self.format, columns, labelled)

    def learn_state(self, examples):
        text_metrics.check_packages(self.text_metrics)
        return {}

    def check(self, examples):
        for index, target in enumerate(examples.labels):
            if self.labels is not None and target not in self.labels:
                raise DataError(f"{examples.where(index)}: {not_in_label_set('label', target, self.labels)}")
            if self.labels is None and not target.strip():
                raise DataError(f"{examples.where(index)}: {no_label(target)}")

    def encode(self, examples):
        settings = self.config
        counted = examples.details and [pair.label and pair.target not in (None, UNKNOWN) for pair in examples.details]
        return encode_pairs(
            self.tokenizer,
            examples.texts,
            examples.labels,
            counted,
            self.frame,
            self.state.structure == "decoder",
            settings.sequence_length,
            settings.target_length,
        )

    # -- model -----------------------------------------------------------------------------------

    def make_model(self, encoder):
        longest, settings = encoder.config.max_positions, self.config
        written = max(settings.target_length, settings.generation.max_new_tokens)
        needed = written + (settings.sequence_length if encoder.structure == "decoder" else 0)
        if needed > longest:
            raise ConfigError(
                f"task.sequence_length={settings.sequence_length}, task.target_length={settings.target_length} and "
                f"task.generation.max_new_tokens={settings.generation.max_new_tokens} need {needed} positions, and the "
                f"model has {longest}; lower them"
            )
        rules, size = settings.generation, self.tokenizer.vocabulary_size
        # Rows of the token table beyond the vocabulary, as T5 has them, are never chosen.
        allowed = tuple(range(size)) if size < encoder.config.vocabulary_size else None
        restrictions = Restrictions(
            self.frame.stop_ids, rules.min_new_tokens, rules.no_repeat_ngram, allowed, rules.repetition_penalty
        )
        return TextToTextModel(encoder, rules, restrictions, self.tokenizer.pad_id, self.stop_strings)

    def _written(self, outputs):
        """For each example its texts, best first: a list of {"generated", "score", "finished"}."""
        names, stop = ("generated_ids", "lengths", "scores"), self.stop_strings
        ids, lengths, scores = (np.stack([output[name] for output in outputs]) for name in names)
        finished = ((ids == self.frame.end) & (np.arange(ids.shape[-1]) < lengths[..., None])).any(axis=-1)
        rows = ids.reshape(-1, ids.shape[-1]), lengths.ravel()
        texts = stop.texts(*rows).numpy().reshape(lengths.shape)
        if stop:
            finished |= np.asarray(stop(*rows)).reshape(lengths.shape)
        written = []
        for columns in zip(texts, scores.tolist(), finished.tolist(), lengths):
            texts_of_source = [
                {"generated": t.decode(), "score": s, "finished": f} for t, s, f, length in zip(*columns) if length
            ]
            # Fewer texts than n_best may have been found.
            written.append(texts_of_source or [{"generated": "", "score": 0.0, "finished": True}])
        return written

    # -- results ---------------------------------------------------------------------------------

    def decide(self, examples, outputs):
        """{"written": what `_written` returns for each example; and sums over the tokens of its targets, if there are any}."""
        decided = {"written": self._written(outputs)}
        if "loss" in outputs[0]:
            decided |= {name: sum(float(output[name]) for output in outputs) for name in ("loss", "correct", "weight")}
        return decided

    def measure(self, examples, decided):
        texts, scores = _best_texts(decided), {}
        if "loss" in decided:
            weight = max(decided["weight"], 1.0)
            scores = {"loss": decided["loss"] / weight, "token_accuracy": decided["correct"] / weight}
        scores |= self._scores_of_texts(examples, texts) | {"examples": len(examples)}
        return scores | metrics.collapsed(
            len(texts) > 1 and len(set(texts)) == 1 and len(set(examples.labels)) > 1,
            f"every source is answered by {brief(texts[0])}; try another learning rate, more epochs or a model that was "
            "pretrained longer",
        )

    def _scores_of_texts(self, examples, texts):
        """The metrics of generated texts, a list of str."""
        targets, details = [target.strip() for target in examples.labels], examples.details
        scores = {"exact_match": float(np.mean([a == b for a, b in zip(targets, texts)]))}
        if self.judged_as == "labels":
            groups = [pair.group for pair in details] if details and self.config.format == "multirc" else None
            scores |= text_metrics.label_scores(targets, texts, self.labels, groups)
        elif self.judged_as == "number":
            scores |= text_metrics.number_scores(targets, texts)
        elif self.judged_as == "referent":
            right = [pair.label for pair in details] if details else [True] * len(texts)
            scores |= text_metrics.referent_scores(targets, texts, right)
        elif self.judged_as == "answers":
            scores |= text_metrics.answer_scores(*_once_a_question(targets, texts, details), self.format.scorer)
        return scores | text_metrics.free_text_scores(targets, texts, self.text_metrics, self.config.bleu_tokenize)

    def report(self, examples, decided):
        if self.judged_as != "labels":
            return super().report(examples, decided)
        sides = examples.labels, _best_texts(decided)
        true, predicted = (np.array([class_of(text, self.labels) for text in side]) for side in sides)
        return {"labels": metrics.by_label(true, predicted, self.labels)}

    def findings(self, examples, decided):
        """The scores of each label, where there are labels, and the texts that match no target, the most likely first."""
        texts, accepted = _best_texts(decided), [{target.strip()} for target in examples.labels]
        for pair, answers in zip(examples.details or [], accepted):
            answers.update(pair.answers)
        wrong = np.array([text not in answers for text, answers in zip(texts, accepted)])
        likely = [texts[0]["score"] for texts in decided["written"]]
        report = self.report(examples, decided) if self.judged_as == "labels" else {}
        return report | findings.errors(
            wrong, likely, lambda i: findings.error(examples, i, examples.labels[i], texts[i])
        )

    def answers(self, examples, decided):
        answers = []
        for texts in decided["written"]:
            answer = dict(texts[0])
            if self.judged_as == "labels":
                text = answer["generated"].strip()
                answer["label"] = text if text in self.labels else None
            if self.config.generation.n_best > 1:
                answer["n_best"] = texts
            answers.append(answer)
        return answers

    def guesses(self, train, examples):
        """{"majority class": always the most frequent label of `train`}; {} for other targets."""
        if self.judged_as != "labels":
            return {}
        most = max(self.labels, key=train.labels.count)
        return {"majority class": {"written": [[{"generated": most}]] * len(examples)}}


def _best_texts(decided):
    """The best text of each example, without white space around it, which no metric counts."""
    return [texts[0]["generated"].strip() for texts in decided["written"]]


def _once_a_question(targets, texts, details):
    """(accepted answers, texts), one for each question: ReCoRD has an example for each answer."""
    if not details:
        return [[target] for target in targets], texts
    groups, answers, first_texts = set(), [], []
    for pair, text in zip(details, texts):
        if pair.group is None or pair.group not in groups:
            groups.add(pair.group)
            answers.append(list(pair.answers) or [pair.target])
            first_texts.append(text)
    return answers, first_texts
