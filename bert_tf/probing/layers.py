"""What each layer of a model knows about words and sentences: classifiers on its frozen vectors.

Words: the tags of a labelled file, as Tenney et al. 2019 and Hewitt and Manning 2019 probe parts of speech. Sentences:
their length and whether two words were exchanged, as SentLen and BShift of Conneau et al. 2018. The classifier is
scikit-learn's multinomial logistic regression on standardized vectors. Three controls stand beside it: the same model
with random weights; control tasks (Hewitt and Liang 2019), in which each word has a random tag of its own, so that only
a classifier that learns words by heart is good at them; and the most frequent tag of each word.
"""

import collections
import dataclasses
import itertools
import zlib
from typing import Annotated

import numpy as np

from bert_tf.backend import as_graph
from bert_tf.config import Range
from bert_tf.errors import DataError
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import layer_table
from bert_tf.tasks.config import TaskConfig
from bert_tf.tasks.features import with_hidden_states
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.tagging.files import open_tagged, read_tagged
from bert_tf.tasks.tagging.sequences import cut_sequences, words_of_sentences
from bert_tf.tasks.tagging.tagging_config import TaggingColumns

#: Classes of the length of a sentence, with as many training sentences each.
LENGTH_CLASSES = 5
#: Iterations of the optimizer at most; what has not converged by then is near enough.
ITERATIONS = 300


@dataclasses.dataclass(frozen=True)
class LayerVectors:
    """The outputs of all layers for some sentences; hidden state 0 is the output of the embeddings.

    Attributes:
        words: float32 [layers + 1, N, H], of the first token of each word (the last one with a decoder).
        sentences: float32 [layers + 1, M, H], the mean of each sentence's words.

    Example:
        layer_vectors(LayerReader(encoder, tokenizer), [["a", "film"], ["good"]]).words.shape  # (2, 3, 16)
    """

    words: np.ndarray
    sentences: np.ndarray


def layer_vectors(reader, sentences, sequence_length=128):
    """The `LayerVectors` of sentences.

    Args:
        reader: `LayerReader`.
        sentences: list of lists of str, words.
        sequence_length: longer sentences are read in parts.

    Raises:
        ConfigError: a model that does not give the outputs of its layers.
    """
    encoder, tokenizer = with_hidden_states(reader.encoder), reader.tokenizer
    length = min(sequence_length, encoder.config.max_positions)
    words = words_of_sentences(tokenizer, sentences)
    is_decoder = encoder.structure == "decoder"
    cut = cut_sequences(words, length, tokenizer.layout, last=is_decoder, token_shape=tokenizer.token_shape)
    plan = cut.plan(TaskConfig(sequence_length=length), reader.batch_size)
    compute = as_graph(lambda features: encoder(features, training=False)["hidden_states"])
    states_of = [None] * len(cut.owners)
    for (indexes, _), features in zip(plan, cut.dataset(plan, tokenizer, length)):
        states = np.stack(compute({name: features[name] for name in INPUTS}))
        for row, index in enumerate(indexes):
            states_of[index] = states[:, row, cut.tagged_pieces[index]]
    vectors = np.concatenate(states_of, axis=1).astype(np.float32)
    owners = np.repeat(cut.owners, [len(pieces) for pieces in cut.tagged_pieces])
    means = [vectors[:, owners == i].mean(axis=1) for i in range(len(sentences))]
    return LayerVectors(vectors, np.stack(means, axis=1))


@dataclasses.dataclass(frozen=True)
class Layers(Probe):
    """Can a linear classifier read the tags of words, the length of a sentence and a changed order from each layer?

    Rows: accuracies on the test sentences by layer; of the tags also the selectivity, the accuracy minus that on the
    control task. Facts: "control", the accuracies on the control task; "classes", how many each has.

    Attributes:
        sequence_length: as of `layer_vectors`.
        seed: of the control tags, and of the words that are exchanged.

    Example:
        sentences, tags = [["a", "good", "film"], ["the", "film"]] * 8, [["D", "A", "N"], ["D", "N"]] * 8
        table = Layers().run(LayerReader(encoder, tokenizer), [(sentences, tags), (sentences, tags)])
        table["tags"]["0"], table["tags: selectivity"]["0"]
    """

    sequence_length: Annotated[int, Range(at_least=4)] = 128
    seed: Annotated[int, Range(at_least=0)] = 0

    name, title, asks, unit = "layers", "layers", "layers", "classifiers"

    def read(self, train, test, most=None):
        """For each of two files of tagged words, as `bert-tf finetune` reads them (CoNLL, CoNLL-U), (sentences, tags)."""
        columns = TaggingColumns()
        files = [read_tagged(open_tagged(path, columns, True, None), columns, True) for path in (train, test)]
        return [(tagged.words[:most], tagged.labels[:most]) for tagged in files]

    def run(self, reader, parts, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            DataError: too few sentences, or training sentences that are all of one class: one tag, or one length.
        """
        train_tags = {tag for tags in parts[0][1] for tag in tags}
        if min(len(sentences) for sentences, _ in parts) < LENGTH_CLASSES or len(train_tags) < 2:
            raise DataError(f"there must be {LENGTH_CLASSES} sentences to train on and to test on, with two tags")
        sentences, tags = zip(*parts)
        shuffled, moved = zip(*(_exchange_words(of_part, self.seed + i) for i, of_part in enumerate(sentences)))
        words = [[word for sentence in of_part for word in sentence] for of_part in sentences]
        tags = [np.array([tag for of_one in of_part for tag in of_one]) for of_part in tags]
        controls = [control_tags(of_part, tags[0], self.seed) for of_part in words]
        lengths = _length_classes(*([len(sentence) for sentence in of_part] for of_part in sentences))
        classes = {"random tags of their words": controls, "numbers of their words": lengths}
        classes["orders (exchanged words or not)"] = moved
        for name, (of_train, _) in classes.items():
            if len(set(of_train.tolist())) < 2:
                raise DataError(f"the {name} are the same for all training sentences; give more sentences")
        vectors = [layer_vectors(reader, of_part, self.sequence_length) for of_part in sentences]
        mixed = [layer_vectors(reader, of_part, self.sequence_length) for of_part in shuffled]
        experiments = {"tags": ("words", vectors, tags), "control": ("words", vectors, controls)}
        experiments |= {"length": ("sentences", vectors, lengths), "order": ("sentences", mixed, moved)}
        accuracies = {name: [] for name in experiments}
        for name, (kind, of_parts, (train, test)) in experiments.items():
            for x, y in zip(*(getattr(of_part, kind) for of_part in of_parts)):
                accuracies[name].append(classify(x, train, y, test, self.seed))
                if progress is not None:
                    progress(sum(map(len, accuracies.values())), len(experiments) * len(vectors[0].words))
        control, frequent = accuracies.pop("control"), _most_frequent_tags(words[0], tags[0])
        guesses = np.array([frequent.get(word, frequent[None]) for word in words[1]])
        rows = {"tags": (accuracies["tags"], float(np.mean(guesses == tags[1])))}
        rows["tags: selectivity"] = [a - b for a, b in zip(accuracies["tags"], control)], None
        rows["length"] = accuracies["length"], _majority(*lengths)
        rows["order"] = accuracies["order"], _majority(*moved)
        note = (
            "Accuracy of a linear classifier by layer. selectivity: minus that on random tags; guess: the most frequent"
        )
        classes = {name: len(set(experiments[name][2][0].tolist())) for name in accuracies}
        facts = {"control": control, "classes": classes}
        return layer_table(self.title, rows, "guess", note, curves=tuple(accuracies), facts=facts)


def classify(train, train_labels, test, test_labels, seed=0):
    """The accuracy on `test` of a logistic regression on `train`: float [N, H] with N labels each."""
    import warnings

    from sklearn.linear_model import LogisticRegression

    mean, scale = train.mean(axis=0), train.std(axis=0) + 1e-6
    model = LogisticRegression(max_iter=ITERATIONS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        model.fit((train - mean) / scale, train_labels)
    return float(np.mean(model.predict((test - mean) / scale) == test_labels))


def control_tags(words, tags, seed=0):
    """For each word a tag drawn from those of `tags`, by their frequency: always the same one for the same word.

    Args:
        words: list of str.
        tags: array of str, of the training file.
        seed: other seeds draw other tags.

    Example:
        control_tags(["a", "film", "a"], np.array(["D", "N", "D"]))  # the first and the last are equal
    """
    drawn = {}
    for word in dict.fromkeys(words):
        chosen = np.random.default_rng([seed, zlib.crc32(word.encode("utf-8", "surrogatepass"))]).integers(len(tags))
        drawn[word] = tags[chosen]
    return np.array([drawn[word] for word in words])


def _exchange_words(sentences, seed):
    """(sentences, about half with two adjacent words swapped, and a bool array that marks them)."""
    rng, changed, moved = np.random.default_rng(seed), [], []
    for sentence in sentences:
        places = [i for i, (a, b) in enumerate(itertools.pairwise(sentence)) if a != b]
        move = bool(places) and rng.random() < 0.5
        if move:
            i = places[rng.integers(len(places))]
            sentence = [*sentence[:i], sentence[i + 1], sentence[i], *sentence[i + 2 :]]
        changed.append(sentence)
        moved.append(move)
    return changed, np.array(moved)


def _length_classes(train, test):
    """The class of each length: quantiles of the training sentences."""
    bounds = np.quantile(train, np.arange(1, LENGTH_CLASSES) / LENGTH_CLASSES)
    return [np.searchsorted(bounds, lengths, side="right") for lengths in (train, test)]


def _most_frequent_tags(words, tags):
    """Word -> its most frequent tag; None -> that of all words."""
    counts = collections.defaultdict(collections.Counter)
    for word, tag in zip(words, tags):
        counts[word][tag] += 1
        counts[None][tag] += 1
    return {word: of_word.most_common(1)[0][0] for word, of_word in counts.items()}


def _majority(train, test):
    values, counts = np.unique(train, return_counts=True)
    return float(np.mean(test == values[np.argmax(counts)]))
