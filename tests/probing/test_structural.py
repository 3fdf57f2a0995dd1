"""The structural probe: its loss and scores by their formulas, and trees that the vectors have or have not."""

import itertools

import numpy as np
import pytest
from fakes import bert, tokenizer_of
from scipy import stats
from scipy.sparse.csgraph import minimum_spanning_tree

from bert_tf.probing import DependencyTree, LayerReader, Trees
from bert_tf.probing.structural import probe_loss, spanning_edges, train_maps, tree_scores, word_vectors


def random_tree(rng, size, punctuation=()):
    heads = [-1, *(int(rng.integers(i)) for i in range(1, size))]
    order = rng.permutation(size)
    mixed = [0] * size
    for i, head in enumerate(heads):
        mixed[order[i]] = int(order[head]) if head >= 0 else -1
    return DependencyTree([f"w{i}" for i in range(size)], mixed, ["x"] * size, [i in punctuation for i in range(size)])


def test_the_loss_is_that_of_the_paper():
    rng = np.random.default_rng(0)
    maps, vectors = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 2, 5, 4))
    trees = [random_tree(rng, 5), random_tree(rng, 3)]
    targets, real = np.full((2, 5, 5), 7.0), np.zeros((2, 5))
    expected = np.zeros(2)
    for row, tree in enumerate(trees):
        size = len(tree.words)
        targets[row, :size, :size], real[row, :size] = tree.distances(), 1
        for layer, i, j in itertools.product(range(2), range(size), range(size)):
            difference = (vectors[layer, row, i] - vectors[layer, row, j]) @ maps[layer]
            expected[layer] += abs(tree.distances()[i, j] - difference @ difference) / size**2 / 2
    found = probe_loss(*(x.astype(np.float32) for x in (maps, vectors, targets, real)))
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-4)


def test_scores_by_their_definitions():
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, size, punctuation=(2,)) for size in (6, 6, 8, 4)]
    distances = [rng.random((len(tree.words),) * 2) for tree in trees]
    distances = [x + x.T for x in distances]
    uuas, spearman = tree_scores(trees, distances)

    def kruskal(x, words):
        tree = minimum_spanning_tree(np.triu(x[np.ix_(words, words)], 1)).tocoo()
        return {(words[i], words[j]) for i, j in zip(tree.row, tree.col)}

    words = [[i for i in range(len(tree.words)) if i != 2] for tree in trees]
    gold = [spanning_edges(tree.distances()[np.ix_(own, own)]) for tree, own in zip(trees, words)]
    gold = [{(own[i], own[j]) for i, j in edges} for edges, own in zip(gold, words)]
    right = sum(len(kruskal(x, own) & edges) for x, own, edges in zip(distances, words, gold))
    assert uuas == pytest.approx(right / sum(map(len, gold))) and sum(map(len, gold)) == 4 + 4 + 6 + 2
    by_length = {6: [0, 1], 8: [2]}  # four words are too few
    means = [
        np.mean([stats.spearmanr(distances[i][w], trees[i].distances()[w])[0] for i in of for w in range(n)])
        for n, of in by_length.items()
    ]
    assert spearman == pytest.approx(np.mean(means))
    assert tree_scores(trees, [tree.distances() for tree in trees]) == (1.0, pytest.approx(1.0))


def test_trees_that_the_vectors_have_are_found():
    """A word is the sum of the directions on its way from the root: the squared distance is that in the tree."""
    rng = np.random.default_rng(2)
    trees, vectors = [random_tree(rng, 7) for _ in range(60)], []
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    for tree in trees:
        x = np.zeros((7, 12))
        for word in range(7):
            at = word
            while tree.heads[at] >= 0:
                x[word, at] += 1
                at = tree.heads[at]
        x[:, 7:] = 3 * rng.normal(size=(7, 5))  # what has nothing to do with the tree
        vectors.append(np.stack([x @ rotation, 3 * rng.normal(size=(7, 12))]).astype(np.float32))
    maps = train_maps(list(zip(vectors, trees)), Trees(epochs=60, rank=None, learning_rate=0.02))
    own, other = (
        tree_scores(trees, [np.square((x[layer, :, None] - x[layer, None]) @ maps[layer]).sum(-1) for x in vectors])
        for layer in (0, 1)
    )
    assert own[0] > 0.9 and own[1] > 0.9 and other[0] < 0.6


def test_the_model_s_vectors():
    tokenizer = tokenizer_of("the un ##believ ##able film is")
    encoder = bert(tokenizer, 2, positions=9, layers=1, output_hidden_states=True)
    words = ["the", "unbelievable", "film", "is", "film"]
    tree = DependencyTree(words, [2, 2, 3, -1, 3], ["x"] * 5, [False] * 5)
    long = DependencyTree(words * 2, [-1, *range(9)], ["x"] * 10, [False] * 10)
    found = word_vectors(LayerReader(encoder, tokenizer), [long, tree])
    states = np.stack(encoder({"token_ids": np.array([[2, 5, 6, 7, 8, 9, 10, 9, 3]])})["hidden_states"])[:, 0]
    expected = np.stack([states[:, 1], states[:, 2:5].mean(axis=1), *(states[:, i] for i in (5, 6, 7))], axis=1)
    assert found[0] is None
    np.testing.assert_allclose(found[1], expected, atol=1e-5)
    done, probe = [], Trees(epochs=2, batch_size=2)
    show = lambda *n: done.append(n)  # noqa: E731
    table = probe.run(LayerReader(encoder, tokenizer), [[tree] * 3, [tree, long]], progress=show)
    assert done == [(1, 2), (2, 2)] and table.facts == {"count": 1, "skipped": 1}
    assert table["UUAS"].keys() == {"0", "1", "neighbours"}
    assert table["UUAS"]["neighbours"] == 3 / 4  # three of the four edges are between neighbours
