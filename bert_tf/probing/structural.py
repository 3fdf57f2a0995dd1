"""The structural probe: are the distances of words in a dependency tree in their vectors?

Hewitt and Manning 2019: a linear map B such that |B(h_i - h_j)|^2 is near the number of edges between words i and j
(section 2.1, equation 1), trained with the L1 loss of section 2.2; the scores of section 4 as the authors' code
(john-hewitt/structural-probes) computes them. The probes of all layers train side by side.
"""

import dataclasses
import itertools
from typing import Annotated

import keras
import numpy as np
from keras import ops
from scipy.spatial.distance import cdist

from bert_tf.backend import as_graph
from bert_tf.config import Range
from bert_tf.errors import DataError
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import layer_table
from bert_tf.probing.trees import read_trees

#: The lengths over which the authors average the Spearman correlation.
LENGTHS = range(5, 51)


@dataclasses.dataclass(frozen=True)
class Trees(Probe):
    """Are the distances of words in a dependency tree in their vectors? By probes that are trained on other sentences.

    Rows, by layer, beside the distance in the sentence, |i - j|, what a model without syntax reaches: "UUAS", the fraction
    of the trees' edges that the minimum spanning tree of the distances has, punctuation left out; "Spearman correlation",
    the mean correlation of the distances from a word with those in the tree, over the words of each length of sentence,
    then over the lengths 5 to 50, nan without such sentences. Facts: "count", "skipped", the test sentences that were read,
    and those that were too long for the model.

    Attributes:
        rank: rows of B; the paper's figure 5 shows no gain above 64. None for the width of the model, as in its tables.
        epochs: over the training sentences. The authors stop when a dev file says so.
        batch_size: sentences of a step, as the authors.
        learning_rate: of Adam, as the authors; it falls to 0 along a line, where they divide it when a dev file says
            so.
        seed: of B and of the order of the sentences.

    Example:
        tree = DependencyTree(["a", "good", "film", "is", "one"], [2, 2, 4, 4, -1], ["x"] * 5, [False] * 5)
        Trees(rank=4, epochs=1).run(LayerReader(encoder, tokenizer), [[tree] * 4, [tree]])["UUAS"]["neighbours"]
    """

    rank: Annotated[int | None, Range(at_least=1)] = 64
    epochs: Annotated[int, Range(at_least=1)] = 10
    batch_size: Annotated[int, Range(at_least=1)] = 20
    learning_rate: Annotated[float, Range(above=0)] = 1e-3
    seed: Annotated[int, Range(at_least=0)] = 0

    name, title, asks, unit = "trees", "trees in the vectors", "layers", "epochs"

    def read(self, train, test, most=None):
        """For each of two CoNLL-U files what `read_trees` returns."""
        return [read_trees(path, most) for path in (train, test)]

    def run(self, reader, parts, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            ConfigError: a model that does not give the outputs of its layers.
            DataError: no sentence of two words fits into the model's positions.
        """
        vectors, border = word_vectors(reader, [*parts[0], *parts[1]]), len(parts[0])
        pairs = (zip(vectors[:border], parts[0]), zip(vectors[border:], parts[1]))
        train, test = ([(v, tree) for v, tree in part if v is not None and len(tree.words) > 1] for part in pairs)
        if not train or not test:
            raise DataError("one of the files has no sentence of two words that fits into the model's positions")
        trees, scores = [tree for _, tree in test], []
        for layer, of_layer in enumerate(train_maps(train, self, progress)):
            projected = [vectors_of_one[layer].astype(np.float64) @ of_layer for vectors_of_one, _ in test]
            scores.append(tree_scores(trees, [cdist(x, x, "sqeuclidean") for x in projected]))
        beside = [np.abs(np.subtract.outer(*[np.arange(len(tree.words))] * 2)) for tree in trees]
        rows = dict(zip(("UUAS", "Spearman correlation"), zip(zip(*scores), tree_scores(trees, beside))))
        skipped = len(parts[1]) - len(trees)
        note = (
            f"{len(trees)} sentences, {skipped} left out (too long, or of one word). UUAS: the fraction of the edges; "
            "correlation: over sentences of 5 to 50 words; neighbours: by the distance in the sentence alone"
        )
        facts = {"count": len(trees), "skipped": skipped}
        return layer_table(self.title, rows, "neighbours", note, curves=tuple(rows), facts=facts)


def word_vectors(reader, trees):
    """For each tree float32 [layers + 1, N, H], the mean of each word's tokens; None where the sentence is too long."""
    pieces = reader.pieces([tree.words for tree in trees])
    indexes, vectors = list(pieces), [None] * len(trees)
    for index, states in reader.hidden_states([list(itertools.chain(*of_word)) for of_word in pieces.values()]):
        sizes = [len(of_word) for of_word in pieces[indexes[index]]]
        starts = np.cumsum([0, *sizes[:-1]])
        vectors[indexes[index]] = np.add.reduceat(states, starts, axis=1) / np.array(sizes, np.float32)[:, None]
    return vectors


def train_maps(pairs, config, progress=None):
    """float64 [layers, H, rank], the maps of all layers, trained on (vectors [layers, N, H], `DependencyTree`) pairs.

    `config` is a `Trees`.
    """
    layers, _, width = pairs[0][0].shape
    rng, rank = np.random.default_rng(config.seed), config.rank or width
    maps = keras.Variable(rng.uniform(-0.05, 0.05, (layers, width, min(rank, width))), dtype="float32")
    steps = config.epochs * -(-len(pairs) // config.batch_size)
    schedule = keras.optimizers.schedules.PolynomialDecay(config.learning_rate, steps, end_learning_rate=0.0)
    optimizer = keras.optimizers.Adam(schedule)
    optimizer.build([maps])
    train = _training_step(maps, optimizer)
    distances = [tree.distances() for _, tree in pairs]
    for epoch in range(config.epochs):
        order = rng.permutation(len(pairs))
        for start in range(0, len(order), config.batch_size):
            chosen = order[start : start + config.batch_size]
            longest = max(len(distances[i]) for i in chosen)
            vectors = np.zeros((layers, len(chosen), longest, width), np.float32)
            targets = np.zeros((len(chosen), longest, longest), np.float32)
            real = np.zeros((len(chosen), longest), np.float32)
            for row, i in enumerate(chosen):
                size = len(distances[i])
                vectors[:, row, :size], targets[row, :size, :size], real[row, :size] = pairs[i][0], distances[i], 1.0
            train(vectors, targets, real)
        if progress is not None:
            progress(epoch + 1, config.epochs)
    return ops.convert_to_numpy(maps.value).astype(np.float64)


def probe_loss(maps, vectors, targets, real):
    """float32 [layers], the L1 loss of section 2.2: per sentence over the square of its length, then the mean.

    Args:
        maps: [layers, H, rank].
        vectors: [layers, B, S, H].
        targets: [B, S, S], distances in the trees.
        real: [B, S], 1 for words and 0 for padding.
    """
    x = ops.einsum("lbsh,lhr->lbsr", vectors, maps)
    norms = ops.sum(ops.square(x), axis=-1)
    predicted = norms[..., :, None] + norms[..., None, :] - 2.0 * ops.matmul(x, ops.transpose(x, (0, 1, 3, 2)))
    errors = ops.abs(predicted - targets) * real[:, :, None] * real[:, None, :]
    lengths = ops.sum(real, axis=-1)
    return ops.mean(ops.sum(errors, axis=(-2, -1)) / ops.square(lengths), axis=-1)


def _training_step(maps, optimizer):
    import tensorflow as tf

    def step(vectors, targets, real):
        with tf.GradientTape() as tape:
            # Adam treats each weight alone: the probes of the layers do not touch each other.
            loss = ops.sum(probe_loss(maps, vectors, targets, real))
        optimizer.apply(tape.gradient(loss, [maps.value]), [maps])

    return as_graph(step, [((None,) * 4, "float32"), ((None,) * 3, "float32"), ((None,) * 2, "float32")])


def tree_scores(trees, distances):
    """(UUAS, Spearman correlation) of distances [N, N] between the words of trees, as the rows of `Trees`.

    Example:
        tree = DependencyTree(["a", "good", "film", "is", "one"], [2, 2, 4, 4, -1], ["x"] * 5, [False] * 5)
        tree_scores([tree], [tree.distances()])  # (1.0, 1.0)
    """
    from scipy.stats import spearmanr

    right = edges = 0
    by_length = {}
    for tree, predicted in zip(trees, distances):
        true, words = tree.distances(), np.flatnonzero(~np.array(tree.punctuation, bool))
        true_edges = spanning_edges(true[np.ix_(words, words)])
        right += len(true_edges & spanning_edges(predicted[np.ix_(words, words)]))
        edges += len(true_edges)
        if len(true) in LENGTHS:
            # Where all distances from a word are equal there is no correlation.
            correlations = [spearmanr(a, b).statistic for a, b in zip(predicted, true) if np.ptp(a) > 0]
            by_length.setdefault(len(true), []).extend(correlations)
    means = [np.mean(correlations) for correlations in by_length.values() if correlations]
    return right / edges if edges else float("nan"), float(np.mean(means)) if means else float("nan")


def spanning_edges(distances):
    """The edges (i, j), i < j, of the minimum spanning tree of distances [N, N], a set."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    # SciPy takes 0 for no edge: two words with the same vector still are neighbours.
    rows, columns = minimum_spanning_tree(np.maximum(distances, 1e-9)).nonzero()
    return {(min(i, j), max(i, j)) for i, j in zip(rows.tolist(), columns.tolist())}
