"""Skip-gram and CBOW with negative sampling: the updates of a block of the corpus, in NumPy.

word2vec.c updates two vectors after each pair of words. Here the gradients of `update_words` consecutive words are
computed from the same vectors and added up, as matrix products.
"""

import numpy as np
from scipy.sparse import csr_array

from bert_tf.vectors.corpus import EncodedCorpus
from bert_tf.vectors.sampling import Distinct, draw_contexts, draw_negatives, keep_probabilities, negatives_table

#: The loss is computed for one of so many updates.
LOSS_EVERY = 8


class NegativeSampling:
    """Skip-gram and CBOW. It has no state but the tables.

    Args:
        config: a `VectorsConfig` whose algorithm is a `SkipGramConfig` or a `CbowConfig`.
        folder: that of the `EncodedCorpus`.
        tables: dict of `initial_tables`; training changes them.

    Attributes:
        num_blocks: the number of blocks in an epoch.
        unit: what `size` counts.

    Example:
        from bert_tf.vectors.corpus import encode

        encode(["to be or not to be"], whole_word_tokenizer(["be", "to", "not", "or"]), "words", row_words=1000)
        settings = VectorsConfig(SkipGramConfig(size=8))
        tables = NegativeSampling.initial_tables(settings, 4)
        NegativeSampling(settings, "words", tables).train(epoch=0, block=0, progress=0.0)
    """

    unit = "words"

    def __init__(self, config, folder, tables):
        corpus = EncodedCorpus.open(folder, config.train.block_words)
        self.config, self.seed, self.corpus = config.algorithm, config.train.seed, corpus
        self.num_blocks = corpus.num_blocks
        self._tables = tables["words"], tables["outputs"]
        self._keep = keep_probabilities(corpus.counts, self.config.subsample)
        self._negatives = negatives_table(corpus.counts, self.config.negative_power)
        self._distinct = Distinct(len(corpus.counts))
        self._update = {"skip_gram": _skip_gram, "cbow": _cbow}[self.config.name]

    @staticmethod
    def prepare(config, folder):
        """What is computed from the corpus before the training: nothing."""

    @staticmethod
    def initial_tables(config, vocabulary_size):
        """dict of float32 arrays: "words" uniform in +-0.5 / size, "outputs" zeros, as in word2vec.c."""
        size = config.algorithm.size
        random = np.random.default_rng([config.train.seed])
        words = (random.random((vocabulary_size, size), np.float32) - np.float32(0.5)) / np.float32(size)
        return {"words": words, "outputs": np.zeros((vocabulary_size, size), np.float32)}

    @staticmethod
    def vectors(tables):
        """The word vectors: float32 [V, size]."""
        return tables["words"]

    def size(self, block):
        """The words of a block."""
        return self.corpus.block_words(block)

    def train(self, epoch, block, progress):
        """Updates the tables by one block.

        Args:
            epoch, block: numbers from 0. What is drawn is a function of them and of the seed.
            progress: the part of all words that were read before, 0 to 1; the learning rate depends on it.

        Returns:
            dict of sums for the metrics: loss, and the number of pairs of which it is the sum.
        """
        config = self.config
        rate = np.float32(config.learning_rate * max(config.last_rate, 1 - progress))
        words, contexts, inside, negatives = self._draw(epoch, block)
        targets = np.concatenate([words[:, None], negatives], 1)  # [N, 1 + negatives]
        weights = targets != words[:, None]  # a negative that is the word itself does not count
        weights[:, 0] = True
        sums = {"loss": 0.0, "pairs": 0}
        with np.errstate(over="ignore"):
            for number, begin in enumerate(range(0, len(words), config.update_words)):
                here = slice(begin, begin + config.update_words)
                batch = (words[contexts[here]], inside[here], targets[here], weights[here])
                with_loss = number % LOSS_EVERY == 0
                loss, pairs = self._update(*self._tables, *batch, rate, self._distinct, config, with_loss)
                sums["loss"] += loss
                sums["pairs"] += pairs
        return sums

    def _draw(self, epoch, block):
        """The words that are kept, the positions of their contexts and which of them count, and the negatives."""
        random = np.random.default_rng([self.seed, epoch, block])
        words, rows = self.corpus.block(block)
        stays = random.random(len(words)) < self._keep[words]
        words, rows = words[stays], rows[stays]
        contexts, inside = draw_contexts(random, rows, self.config.window)
        negatives = draw_negatives(random, self._negatives, (len(words), self.config.negatives))
        return words, contexts, inside, negatives


def _skip_gram(x, y, contexts, inside, targets, weights, rate, distinct, config, measured):
    """Updates the tables x and y by some words.

    As in word2vec.c, the vector of each word in the window is the input, and predicts the word in the middle.

    Args:
        x, y: float32 [V, size].
        contexts: the words of the windows, [N, 2 * window]; `inside` says which count.
        targets: the word in the middle and its negatives, [N, 1 + negatives]; `weights` says which count.
        rate: the learning rate.
        distinct: a `Distinct` of the vocabulary.
        config: a `SkipGramConfig`.
        measured: whether the loss is computed.

    Returns:
        (sum of the losses, number of pairs of which it is the sum; both 0 if it is not measured).
    """
    middle, column = np.nonzero(inside)
    inputs, places = distinct(contexts[middle, column])
    outputs, columns = distinct(targets.ravel())
    columns = columns.reshape(targets.shape)[middle]
    cells = places[:, None] * len(outputs) + columns  # of the matrix of inputs and outputs
    shape = len(inputs), len(outputs)
    positive = np.bincount(cells[:, 0], minlength=shape[0] * shape[1]).astype(np.float32).reshape(shape)
    negative = cells[:, 1:][weights[middle, 1:]]
    negative = np.bincount(negative, minlength=shape[0] * shape[1]).astype(np.float32).reshape(shape)
    dx, dy, loss = pair_gradients(x.take(inputs, 0), y.take(outputs, 0), positive, negative, measured)
    for table, rows, change in ((x, inputs, dx), (y, outputs, dy)):
        change *= rate
        change += table.take(rows, 0)  # read again: other processes have written since
        table[rows] = change
    return (loss, len(middle)) if measured else (0.0, 0)


def pair_gradients(x, y, positive, negative, measured=True):
    """What raises the log-likelihood of pairs: log sigmoid(x y) of positive ones, log sigmoid(-x y) of negative ones.

    Equation 4 of Mikolov et al. 2013 ("Distributed Representations"), summed over pairs.

    Args:
        x: float32 [M, D].
        y: float32 [N, D].
        positive, negative: float32 [M, N]: how often each pair occurs.
        measured: whether the loss is computed.

    Returns:
        (dx [M, D], dy [N, D]: the derivatives of the log-likelihood; its negative, or 0.0 if it is not measured).

    Example:
        ones = np.ones((1, 1), "float32")
        pair_gradients(np.zeros((1, 2), "float32"), np.ones((1, 2), "float32"), ones, 0 * ones)  # dx = [[0.5, 0.5]]
    """
    probability = x @ y.T
    np.negative(probability, out=probability)
    np.exp(probability, out=probability)
    probability += 1
    np.reciprocal(probability, out=probability)
    loss = 0.0
    if measured:
        logs = positive * np.log(probability + 1e-10) + negative * np.log(1 - probability + 1e-10)
        loss = -float(logs.sum(dtype=np.float64))
    gradient = positive - (positive + negative) * probability
    return gradient @ y, gradient.T @ x, loss


def _cbow(x, y, contexts, inside, targets, weights, rate, distinct, config, measured):
    """As `_skip_gram`, but the input is the mean of the vectors in the window."""
    sizes = inside.sum(1)
    if not sizes.all():  # words without a neighbour
        some = sizes > 0
        contexts, inside, targets, weights, sizes = (a[some] for a in (contexts, inside, targets, weights, sizes))
    count = len(sizes)
    inputs, places = distinct(contexts[inside])
    begins = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(places), np.float32)
    windows = csr_array((ones, places, begins), shape=(count, len(inputs)))
    share = (1 / sizes).astype(np.float32)[:, None]
    mean = (windows @ x.take(inputs, 0)) * share  # [N, size]
    outputs, columns = distinct(targets.ravel())
    vectors = y.take(targets, 0)  # [N, 1 + negatives, size]
    probability = 1 / (1 + np.exp(-np.einsum("nd,nkd->nk", mean, vectors)))
    gradient = -probability
    gradient[:, 0] += 1
    gradient *= weights
    dmean = np.matmul(gradient[:, None], vectors)[:, 0]
    if config.divided_gradient:
        dmean *= share
    begins = np.arange(0, targets.size + 1, targets.shape[1])
    spread = csr_array((gradient.ravel(), columns, begins), shape=(count, len(outputs)))
    mean *= rate
    dmean *= rate
    for table, rows, change in ((x, inputs, windows.T @ dmean), (y, outputs, spread.T @ mean)):
        change += table.take(rows, 0)  # as above
        table[rows] = change
    if not measured:
        return 0.0, 0
    right = np.where(np.arange(targets.shape[1]) == 0, probability, 1 - probability)
    return -float((np.log(right + 1e-10) * weights).sum(dtype=np.float64)), count
