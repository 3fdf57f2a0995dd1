"""Tagging: a tag for every word, as parts of speech or named entities (Devlin et al. 2019, section 5.3)."""

import collections
import dataclasses
from pathlib import Path

import numpy as np

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.rows.files import FORMATS
from bert_tf.tasks.rows.labels import check_distinct, class_weights, not_in_label_set
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.state import TaskState
from bert_tf.tasks.tagging.entities import complete, entities, entity_scores, marks_entities, scores_by_type
from bert_tf.tasks.tagging.files import (
    in_scheme,
    open_tagged,
    read_tagged,
    scheme_of_file,
    without_documents,
    write_conll,
)
from bert_tf.tasks.tagging.schemes import prefixes_of, rewrite
from bert_tf.tasks.tagging.sequences import cut_sequences, words_of_sentences, words_of_texts
from bert_tf.tasks.task import Task
from bert_tf.tokenizers.layout import with_layout


@dataclasses.dataclass(frozen=True)
class TaggingState(TaskState):
    """The state of a tagger.

    Attributes:
        scheme: of the entity tags that the model learns; None for other tags.
        file_scheme: of the entity tags of the training file.
        class_weights: the weight of each tag in the training loss; None: all weigh 1.
    """

    scheme: str | None = None
    file_scheme: str | None = None
    class_weights: tuple[float, ...] | None = None


class TaggingTask(Task):
    """One tag of a set for each word.

    `evaluate` gives `accuracy` over words, `loss` (nats a word), `words` (their number) and, for tags that mark
    entities (IOB1, IOB2, BIOES, BILOU; with types as in B-PER, or without), `precision`, `recall` and `f1` over whole
    entities.

    `predict` gives {"text", "words": [{"word", "tag", "probability", "start", "end"}], and for entity
    tags "entities": [{"type", "text", "start", "end"}]}; `start` and `end` count characters of "text",
    which is the text as given, or the words joined by spaces. Raw text is split into words at white space and
    punctuation.

    A word's tag is read at its first token, on a decoder at its last one.

    Entity tags are checked by the rules of their scheme when a labelled file is read, and rewritten where the model
    learns another one (`TaggingConfig.scheme`, `bert_tf.tasks.tagging.schemes`). `predict` writes in the training
    file's scheme, or in that of `TaggingColumns.tag_scheme`.

    Example:
        task = TaggingTask({"kind": "tagging", "sequence_length": 32}, tokenizer)
        train = task.read([{"words": ["Anna", "met", "Paul"], "tags": ["B-PER", "O", "B-PER"]}])
        task = task.learn(train)
        model = task.model(encoder)
        task.evaluate(model, train)["f1"]
        task.predict(model, ["Anna met Paul."])[0]["words"][0]["tag"]
    """

    state_class = TaggingState
    head_kind = "tagging"

    def check_settings(self):
        if self.labels is not None and self.metric != "accuracy" and not self.marks_entities:
            raise ConfigError(
                f"task.metric={self.metric} needs tags that mark entities (O, B-..., I-...); set ",
                Advice("task.metric", "accuracy"),
            )

    def make_tokenizer(self, tokenizer):
        return with_layout(tokenizer, self.config.decoder.layout) if self.config.decoder.layout else tokenizer

    @property
    def marks_entities(self):
        """Whether the tags mark entities; False until they are known."""
        return self.labels is not None and marks_entities(self.labels)

    @property
    def metric(self):
        return self.config.metric or ("f1" if self.marks_entities else "accuracy")

    def open(self, data, columns, labelled):
        return open_tagged(data, columns, labelled, self.row_of), columns

    def row_of(self, item):
        if isinstance(item, str):
            return {"text": item}
        if not isinstance(item, (list, tuple)) or not all(isinstance(word, str) for word in item):
            raise BadRow(f"it is {brief(item)}; it must be a text, or a list of words, each a str")
        return {"words": list(item)}

    def read_table(self, table, columns, labelled):
        examples = read_tagged(table, columns, labelled, self.labels or ())
        if labelled and not any(examples.labels):
            raise DataError(f"{examples.path}: no sentence has a word; there must be one at least")
        if self.config.context == "document" and table.is_file and examples.documents is None:
            without_documents(table.path, labelled)
        return self._in_scheme(examples) if labelled else examples

    def _in_scheme(self, examples):
        """The examples with entity tags in the task's scheme, which the training file determines; both are in `traits`."""
        setting = examples.columns_config.tag_scheme
        file_scheme = scheme_of_file(examples, setting, self.labels)
        if file_scheme is None:
            if self.config.scheme and any(tag != "O" for tags in examples.labels for tag in tags):
                raise ConfigError(
                    f"task.scheme={self.config.scheme} needs tags that mark entities (O, B-..., I-...), and not all tags "
                    f"of {examples.path} do; remove task.scheme"
                )
            return examples
        if self.labels is not None:
            types = {tag[2:] for tag in self.labels}
            self._check_known(examples, lambda tag: tag == "O" or tag in self.labels or tag[2:] in types)
        scheme = self.state.scheme
        if scheme is None:
            # Labels that are given, or those of a published model, have a scheme of their own.
            shown = prefixes_of(self.labels or ()) if self.marks_entities else None
            plain = "IOB1" if file_scheme == "IOB1" else "IOB2"
            scheme = self.config.scheme or shown or (plain if self.marks_entities else file_scheme)
        examples = dataclasses.replace(examples, traits={"scheme": scheme, "file_scheme": file_scheme})
        if file_scheme == scheme and setting != "conlleval":
            return examples
        return in_scheme(examples, scheme)

    def _check_known(self, examples, is_known):
        for index, (words, tags) in enumerate(zip(examples.words, examples.labels)):
            for position, (word, tag) in enumerate(zip(words, tags)):
                if not is_known(tag):
                    where = examples.where_word(index, position)
                    raise DataError(f"{where}: of '{word}' {not_in_label_set('tag', tag, self.labels)}")

    def learn_state(self, examples):
        labels, schemes = self.labels, examples.traits if self.state.scheme is None else {}
        counts = collections.Counter(tag for tags in examples.labels for tag in tags)
        if labels is None:
            if len(counts) < 2 and not marks_entities(counts):
                raise DataError(
                    f"{examples.path}: every word has the tag '{min(counts)}', but there must be two tags at least; give the "
                    "column of the tags, e.g. ",
                    Advice("data.columns.tags", "3"),
                    ", or all tags, e.g. ",
                    Advice("task.labels", "[O,B-PER,I-PER]"),
                )
            check_distinct(sorted(counts), examples.path)
            labels = complete(counts) if marks_entities(counts) else tuple(sorted(counts))
        weights = class_weights(self.config.loss.class_weights, labels, [counts[label] for label in labels])
        return schemes | {"labels": labels, "class_weights": weights}

    def check(self, examples):
        if self.labels is not None:
            self._check_known(examples, set(self.labels).__contains__)

    def encode(self, examples):
        if examples.words is None:
            words = words_of_texts(self.tokenizer, examples.texts)
        else:
            words = words_of_sentences(self.tokenizer, examples.words)
        labels = None if examples.labels is None else self._numbers(examples)
        last = self.state.structure == "decoder"
        documents = examples.documents if self.config.context == "document" else None
        if self.config.context == "file" and examples.lines is not None:
            documents = [0] * len(examples)
        length, layout = self.config.sequence_length, self.tokenizer.layout
        return cut_sequences(words, length, layout, labels, last, documents, self.tokenizer.token_shape)

    def _numbers(self, examples):
        number = {label: i for i, label in enumerate(self.known_labels)}
        return [[number[tag] for tag in tags] for tags in examples.labels]

    def placeholder_labels(self, examples):
        return [[self.labels[0]] * len(words) for words in examples.words]

    def make_model(self, encoder):
        config, units = self.config, len(self.known_labels)
        options = {"class_weights": self.state.class_weights, "label_smoothing": config.loss.label_smoothing}
        options |= {"head": self.head_of(encoder.config), "lm_weight": config.decoder.lm_weight}
        return Classifier(encoder, units, config.head.dropout, name="tagging", **options)

    def decide(self, examples, outputs):
        """The logits of the words of each example: float arrays [words, C]."""
        sequences = self.sequences(examples)
        parts = [[] for _ in range(len(examples))]
        for owner, positions, output in zip(sequences.owners, sequences.tagged_pieces, outputs):
            parts[owner].append(output["logits"][positions])
        return [np.concatenate(part) for part in parts]

    def _tags(self, logits):
        return [[self.labels[i] for i in np.argmax(sentence, axis=-1)] for sentence in logits]

    def measure(self, examples, logits):
        labels, flat = _concatenate(self._numbers(examples)), np.concatenate(logits)
        predictions = np.argmax(flat, axis=-1)
        scores = {"loss": metrics.cross_entropy(labels, flat), "accuracy": metrics.accuracy(labels, predictions)}
        if self.marks_entities:
            scores |= entity_scores(examples.labels, self._tags(logits))
        scores |= {"examples": len(examples), "words": len(labels)}
        return scores | metrics.collapse(labels, predictions, self.labels, what="word")

    def report(self, examples, logits):
        if self.marks_entities:
            return {"entities": scores_by_type(examples.labels, self._tags(logits))}
        labels, predictions = _concatenate(self._numbers(examples)), np.argmax(np.concatenate(logits), axis=-1)
        return {"labels": metrics.by_label(labels, predictions, self.labels)}

    def findings(self, examples, logits):
        """The scores of each type or tag, the calibration by words, and sentences with their errors marked.

        The first sentences are those with the most confident wrong word.
        """
        numbers = self._numbers(examples)
        tags, right, confidence, worst = self._tags(logits), [], [], []
        for sentence, expected in zip(logits, numbers):
            right.append(np.argmax(sentence, axis=-1) == np.array(expected, np.int64))
            confidence.append(np.exp(np.max(metrics.log_softmax(sentence), axis=-1)) if len(sentence) else np.zeros(0))
            worst.append(np.max(np.where(right[-1], 0.0, confidence[-1]), initial=0.0))
        wrong = np.array([not all(sentence) for sentence in right])
        calibration = findings.calibration(np.concatenate(confidence), np.concatenate(right))
        errors = findings.errors(wrong, worst, lambda i: self._marked(examples, i, tags[i], worst[i]))
        return self.report(examples, logits) | {"calibration": calibration} | errors

    def _marked(self, examples, index, tags, confidence):
        """The `findings.error` of a sentence."""
        words, true = self.sequences(examples).words[index], examples.labels[index]
        if self.marks_entities:
            predicted, true = set(entities(tags)), set(entities(true))
            verdicts = [(predicted & true, "right"), (predicted - true, "wrong"), (true - predicted, "missed")]
            spans = [(*span, verdict) for spans, verdict in verdicts for span in spans]
        else:
            pairs = enumerate(zip(tags, true))
            spans = [(f"{tag}, not {true_tag}", i, i, "wrong") for i, (tag, true_tag) in pairs if tag != true_tag]
        marks = [(words.starts[first], words.ends[last], verdict, kind) for kind, first, last, verdict in spans]
        text = " ".join(examples.words[index])
        return findings.error(examples, index, confidence=float(confidence), text=text, marks=marks)

    def answers(self, examples, logits):
        texts = examples.texts or [" ".join(words) for words in examples.words]
        words = self.sequences(examples).words
        setting = getattr(examples.columns_config, "tag_scheme", None)
        scheme = self.state.file_scheme or self.state.scheme if setting in (None, "conlleval") else setting
        return [self._answer(*example, scheme) for example in zip(texts, words, logits, self._tags(logits))]

    def _answer(self, text, words, logits, tags, scheme):
        probabilities = np.exp(np.max(metrics.log_softmax(logits), axis=-1))
        if self.marks_entities and scheme not in (None, self.state.scheme):
            tags = rewrite(tags, scheme)
        answer = {
            "text": text,
            "words": [
                {"word": text[start:end], "tag": tag, "probability": float(p), "start": start, "end": end}
                for start, end, tag, p in zip(words.starts, words.ends, tags, probabilities)
            ],
        }
        if self.marks_entities:
            spans = ((kind, words.starts[first], words.ends[last]) for kind, first, last in entities(tags))
            answer["entities"] = [{"type": kind, "text": text[a:b], "start": a, "end": b} for kind, a, b in spans]
        return answer

    def predictions_file(self, examples, answers, path):
        if FORMATS.get(Path(path).suffix.lower()) != "conll":
            return None
        answers = [answer["words"] for answer in answers if "words" in answer]
        if examples.words is None:
            examples = Examples(words=[[word["word"] for word in words] for words in answers])
        tags = [[word["tag"] for word in words] for words in answers]
        return write_conll(examples, tags, getattr(examples.columns_config, "tags", None))

    def guesses(self, train, examples):
        """{"majority class": for every word the most frequent tag of `train`, "most frequent tag of the word": each word's
        own, and the former for words that are not in `train`}.
        """
        counts = collections.defaultdict(lambda: np.zeros(len(self.labels)))
        for words, tags in zip(train.words, self._numbers(train)):
            for word, tag in zip(words, tags):
                counts[word][tag] += 1
        overall = sum(counts.values())
        # The overall frequencies, added to each word's counts, decide ties and unknown words.
        prior = overall / overall.sum()
        unknown = np.zeros(len(self.labels))
        always = [np.tile(np.log(prior + 1e-9), (len(words), 1)) for words in examples.words]
        of_words = [[counts.get(word, unknown) + prior for word in words] for words in examples.words]
        # A sentence without words becomes an array [0, C].
        by_word = [np.log(np.reshape(rates, (-1, len(self.labels))) + 1e-9) for rates in of_words]
        return {"majority class": always, "most frequent tag of the word": by_word}


def _concatenate(numbers):
    return np.array([number for sentence in numbers for number in sentence], np.int64)
