"""What each layer of a model knows about words and sentences: classifiers on its frozen vectors.

Words: the tags of a labelled file, as Tenney et al. 2019 and Hewitt and Manning 2019 probe parts of speech. Sentences:
    their
length and whether two words were exchanged, as SentLen and BShift of Conneau et al. 2018. The classifier is
scikit-learn's multinomial logistic regression on standardized vectors. Three controls stand beside it: the same model
with random weights; control tasks (Hewitt and Liang 2019), in which each word has a random tag of its own, so that only
a classifier that learns words by heart is good at them; and the most frequent tag of each word.
"""

import collections
import dataclasses
import itertools
import zlib

import numpy as np

from bert_tf.backend import as_graph
from bert_tf.errors import DataError
from bert_tf.probing.layer_charts import grid, layer_chart
from bert_tf.probing.tables import ProbeTable
from bert_tf.tasks.config import TaskConfig
from bert_tf.tasks.features import with_hidden_states
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.tagging.sequences import cut_sequences, words_of_sentences

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
        layer_vectors(encoder, tokenizer, [["a", "film"], ["good"]]).words.shape  # (2, 3, 16)
    """

    words: np.ndarray
    sentences: np.ndarray


@dataclasses.dataclass(frozen=True)
class LayerProbe:
    """Accuracies of the classifiers of one probe.

    Attributes:
        layers: tuple of float, the accuracy on the test sentences by layer, that of the embeddings first.
        control: the same on the control task; None for sentences.
        baseline: float, the accuracy of the most frequent tag of each word, or of the most frequent class.
        classes: int.

    Example:
        LayerProbe((0.7, 0.8), (0.6, 0.5), 0.65, 12).selectivity  # of each layer: about (0.1, 0.3)
    """

    layers: tuple
    control: tuple | None
    baseline: float
    classes: int

    @property
    def selectivity(self):
        """tuple of float, the accuracy minus that on the control task; None without one."""
        return None if self.control is None else tuple(a - b for a, b in zip(self.layers, self.control))


def layer_vectors(encoder, tokenizer, sentences, sequence_length=128, batch_size=32):
    """The `LayerVectors` of sentences.

    Args:
        encoder: an encoder or decoder that can give the outputs of its layers.
        tokenizer: of its pretraining.
        sentences: list of lists of str, words.
        sequence_length: longer sentences are read in parts.
        batch_size: sentences computed together.

    Raises:
        ConfigError: a model that does not give the outputs of its layers.
    """
    encoder = with_hidden_states(encoder)
    length = min(sequence_length, encoder.config.max_positions)
    words = words_of_sentences(tokenizer, sentences)
    cut = cut_sequences(
        words, length, tokenizer.layout, last=encoder.structure == "decoder", token_shape=tokenizer.token_shape
    )
    plan = cut.plan(TaskConfig(sequence_length=length), batch_size)
    compute = as_graph(lambda features: encoder(features, training=False)["hidden_states"])
    found = [None] * len(cut.owners)
    for (indexes, _), features in zip(plan, cut.dataset(plan, tokenizer, length)):
        states = np.stack(compute({name: features[name] for name in INPUTS}))
        for row, index in enumerate(indexes):
            found[index] = states[:, row, cut.tagged_pieces[index]]
    vectors = np.concatenate(found, axis=1).astype(np.float32)
    owners = np.repeat(cut.owners, [len(pieces) for pieces in cut.tagged_pieces])
    means = [vectors[:, owners == i].mean(axis=1) for i in range(len(sentences))]
    return LayerVectors(vectors, np.stack(means, axis=1))


def probe_layers(encoder, tokenizer, train, test, sequence_length=128, batch_size=32, seed=0, progress=None):
    """Probes all layers of a model for tags, sentence length and word order.

    Args:
        encoder, tokenizer, sequence_length, batch_size: as of `layer_vectors`.
        train, test: pairs (list of sentences, list of their tags), lists of lists of str.
        seed: of the control tags, and of the words that are exchanged.
        progress: function(classifiers done, all), called after each; None for nothing.

    Returns:
        {"tags", "length", "order": `LayerProbe`}.

    Raises:
        DataError: too few sentences, or training sentences that are all of one class: one tag, or one length.

    Example:
        sentences, tags = [["a", "good", "film"], ["the", "film"]] * 8, [["D", "A", "N"], ["D", "N"]] * 8
        probe_layers(encoder, tokenizer, (sentences, tags), (sentences, tags))["tags"].layers
    """
    parts = [sentences for sentences, _ in (train, test)]
    if min(map(len, parts)) < LENGTH_CLASSES or len({tag for tags in train[1] for tag in tags}) < 2:
        raise DataError(
            f"there must be at least {LENGTH_CLASSES} sentences to train on and to test on, with two tags or more"
        )
    shuffled, moved = zip(*(_exchanged(sentences, seed + i) for i, sentences in enumerate(parts)))
    words = [[word for sentence in sentences for word in sentence] for sentences in parts]
    tags = [np.array([tag for of_one in of_all for tag in of_one]) for _, of_all in (train, test)]
    controls = [control_tags(of_part, tags[0], seed) for of_part in words]
    lengths = _length_classes(*([len(sentence) for sentence in sentences] for sentences in parts))
    classes = {"random tags of their words": controls, "numbers of their words": lengths}
    classes["orders (exchanged words or not)"] = moved
    for name, (of_train, _) in classes.items():
        if len(set(of_train.tolist())) < 2:
            raise DataError(
                f"the {name} are the same for all training sentences, and a classifier needs two classes; give more "
                "sentences, of different words and lengths"
            )
    vectors = [layer_vectors(encoder, tokenizer, sentences, sequence_length, batch_size) for sentences in parts]
    mixed = [
        layer_vectors(encoder, tokenizer, sentences, sequence_length, batch_size).sentences for sentences in shuffled
    ]
    of_words, of_sentences = ([getattr(v, name) for v in vectors] for name in ("words", "sentences"))
    count, done = len(of_words[0]), 0

    def accuracies(x, labels):
        nonlocal done
        found = []
        for layer in range(count):
            found.append(classify(x[0][layer], labels[0], x[1][layer], labels[1], seed))
            done += 1
            if progress is not None:
                progress(done, 4 * count)
        return tuple(found)

    own = _most_frequent_tags(words[0], tags[0])
    guesses = np.array([own.get(word, own[None]) for word in words[1]])
    return {
        "tags": LayerProbe(
            accuracies(of_words, tags),
            accuracies(of_words, controls),
            float(np.mean(guesses == tags[1])),
            len(set(tags[0])),
        ),
        "length": LayerProbe(accuracies(of_sentences, lengths), None, _majority(*lengths), len(set(lengths[0]))),
        "order": LayerProbe(accuracies(mixed, moved), None, _majority(*moved), 2),
    }


def layers_table(result, control=None):
    """The `ProbeTable` of what `probe_layers` returns, beside that of random weights: a column for each layer, and charts.

    Example:
        layers_table({"tags": LayerProbe((0.7, 0.8), (0.6, 0.5), 0.65, 12)}).lines()
    """
    rows, charts = [], []
    for name, found in result.items():
        random = None if control is None else control[name].layers
        lines = {name: found.layers, f"{name}: selectivity": found.selectivity, f"{name}: random weights": random}
        guess = [found.baseline, None, None]
        rows += [(label, [*values, own]) for (label, values), own in zip(lines.items(), guess) if values is not None]
        charts.append(layer_chart(name, {"model": found.layers, "random": random}, {"guess": found.baseline}))
    note = (
        "Accuracy of a linear classifier by layer; 0 is the output of the embeddings. selectivity: accuracy minus that on random "
        "tags of words; guess: the most frequent tag of a word, or class"
    )
    layers = range(len(next(iter(result.values())).layers))
    return ProbeTable("layers", [*map(str, layers), "guess"], rows, note, [grid(charts)], bars=False)


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


def _exchanged(sentences, seed):
    """(sentences, of which about half have two neighbouring words exchanged, bool whether each has)."""
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
    return {word: found.most_common(1)[0][0] for word, found in counts.items()}


def _majority(train, test):
    values, counts = np.unique(train, return_counts=True)
    return float(np.mean(test == values[np.argmax(counts)]))
