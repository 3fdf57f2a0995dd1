"""The updates of skip-gram, CBOW and GloVe equal their formulas, one pair at a time, in float64."""

import json

import numpy as np
import pytest
from scipy.special import expit

from bert_tf.vectors import CbowConfig, Glove, GloveConfig, SkipGramConfig, VectorsConfig, negative_sampling
from bert_tf.vectors.corpus import EncodedCorpus
from bert_tf.vectors.glove import PAIRS, count_pairs
from bert_tf.vectors.negative_sampling import NegativeSampling, pair_gradients

ROWS = [[0, 1, 2, 0, 3], [4, 0, 1], [2, 2, 5, 1, 0, 3, 4]]


@pytest.fixture
def folder(tmp_path):
    """A corpus of six words."""
    ids = np.concatenate(ROWS).astype(np.int32)
    ids.tofile(tmp_path / "ids.int32")
    np.save(tmp_path / "rows.npy", np.cumsum([0, *map(len, ROWS)]))
    (tmp_path / "corpus.json").write_text(json.dumps({"counts": np.bincount(ids).tolist()}))
    return tmp_path


def random_tables(settings, words=6):
    tables = NegativeSampling.initial_tables(settings, words)
    random = np.random.default_rng(3)
    return {name: random.normal(size=table.shape).astype(np.float32) for name, table in tables.items()}


def drawn(algorithm):
    """The words of block 0, the words in the window of each, and its negatives without those that equal it."""
    words, contexts, inside, negatives = algorithm._draw(0, 0)
    return [
        (word, words[places[here]], [n for n in others if n != word])
        for word, places, here, others in zip(words, contexts, inside, negatives)
    ]


@pytest.mark.parametrize("config, divided", [(SkipGramConfig, {}), (CbowConfig, {"divided_gradient": False}),
                                             (CbowConfig, {"divided_gradient": True})])  # fmt: skip
def test_skip_gram_and_cbow(folder, config, divided):
    """Mikolov et al. 2013, equation 4: the gradients of all pairs at the first vectors, times the learning rate.

    Skip-gram predicts a word from each other of its window, CBOW from the mean of them.
    """
    settings = VectorsConfig(config(size=4, window=2, subsample=0, learning_rate=0.1, **divided))
    tables = random_tables(settings)
    x, y = (np.float64(tables[name]) for name in ("words", "outputs"))
    dx, dy, loss = np.zeros_like(x), np.zeros_like(y), 0.0
    algorithm = NegativeSampling(settings, folder, tables)
    for word, contexts, negatives in drawn(algorithm):
        for inputs in contexts[:, None] if config is SkipGramConfig else [contexts]:
            mean, gradient = x[inputs].mean(0), 0
            for target, label in [(word, 1), *((n, 0) for n in negatives)]:
                p = expit(mean @ y[target])
                gradient = gradient + (label - p) * y[target]
                dy[target] += (label - p) * mean
                loss -= np.log(p if label else 1 - p)
            for context in inputs:
                dx[context] += gradient / (len(inputs) if divided.get("divided_gradient") else 1)
    sums = algorithm.train(epoch=0, block=0, progress=0.25)
    np.testing.assert_allclose(tables["words"], x + 0.075 * dx, atol=1e-5)
    np.testing.assert_allclose(tables["outputs"], y + 0.075 * dy, atol=1e-5)
    assert sums["loss"] == pytest.approx(loss, rel=1e-5)
    pairs = [len(contexts) if config is SkipGramConfig else 1 for _, contexts, _ in drawn(algorithm)]
    assert sums["pairs"] == sum(pairs)


def test_what_other_processes_write_meanwhile_is_kept(folder, monkeypatch):
    settings = VectorsConfig(SkipGramConfig(size=4, window=2, subsample=0, learning_rate=0.1))
    alone, disturbed = random_tables(settings), random_tables(settings)
    NegativeSampling(settings, folder, alone).train(epoch=0, block=0, progress=0.0)

    def gradients_while_another_writes(*arguments):
        result = pair_gradients(*arguments)
        disturbed["words"] += 100
        return result

    monkeypatch.setattr(negative_sampling, "pair_gradients", gradients_while_another_writes)
    NegativeSampling(settings, folder, disturbed).train(epoch=0, block=0, progress=0.0)
    np.testing.assert_allclose(disturbed["words"], alone["words"] + 100, atol=1e-4)


def test_the_rate_falls_to_its_smallest_part(folder):
    changes = []
    for progress in (0.0, 0.5, 1.0):
        settings = VectorsConfig(SkipGramConfig(size=4, window=2, subsample=0, last_rate=0.01))
        tables = random_tables(settings)
        before = tables["words"].copy()
        NegativeSampling(settings, folder, tables).train(0, 0, progress)
        changes.append(np.abs(tables["words"] - before).max())
    assert changes[1] / changes[0] == pytest.approx(0.5, rel=1e-3)
    assert changes[2] / changes[0] == pytest.approx(0.01, rel=1e-2)


def test_pairs_count_by_their_distance_within_a_row(folder):
    expected = np.zeros((6, 6))
    for row in ROWS:
        for i, left in enumerate(row):
            for j, right in enumerate(row):
                if 0 < abs(i - j) <= 3:
                    expected[left, right] += 1 / abs(i - j)
    counted = count_pairs(EncodedCorpus.open(folder, block_words=8), window=3).toarray()
    np.testing.assert_allclose(counted, expected)


def test_glove(folder):
    """Pennington et al. 2014, equation 8, and the AdaGrad of glove.c, for pairs that share no word and no context."""
    settings = VectorsConfig(GloveConfig(size=4, window=3, x_max=2.0))
    Glove.prepare(settings, folder)
    pairs = np.load(folder / PAIRS)
    found = {(pair["word"], pair["context"]): pair for pair in pairs}
    one = np.array([found[0, 1], found[1, 2]])
    np.save(folder / PAIRS, one)
    tables = Glove.initial_tables(settings, 6)
    random = np.random.default_rng(3)
    for name in tables:
        tables[name] = np.abs(random.normal(size=tables[name].shape)).astype(np.float32)
    expected = {name: np.float64(table) for name, table in tables.items()}
    cost = 0.0
    for i, j, count in one.tolist():
        w, c = expected["words"][i].copy(), expected["contexts"][j].copy()
        error = w @ c + expected["word_biases"][i, 0] + expected["context_biases"][j, 0] - np.log(count)
        weighted = min(1, (count / 2.0) ** 0.75) * error
        cost += weighted * error / 2
        for name, row, gradient in (
            ("words", i, weighted * c), ("contexts", j, weighted * w), ("word_biases", i, weighted), ("context_biases", j, weighted),
        ):  # fmt: skip
            step = 0.05 * gradient
            expected[name][row] -= step / np.sqrt(expected[f"{name}_squares"][row])
            expected[f"{name}_squares"][row] += step**2
    found = Glove(settings, folder, tables).train(epoch=0, block=0, progress=0.0)
    assert found["loss"] == pytest.approx(cost, rel=1e-5)
    for name in expected:
        np.testing.assert_allclose(tables[name], expected[name], atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(Glove.vectors(tables), tables["words"] + tables["contexts"])
