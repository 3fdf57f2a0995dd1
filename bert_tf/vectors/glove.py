"""GloVe (Pennington et al. 2014): counting which words meet, and the fit to the counts, in NumPy."""

from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from bert_tf.errors import DataError
from bert_tf.files import atomic_write, is_there
from bert_tf.progress import Progress
from bert_tf.vectors.corpus import EncodedCorpus
from bert_tf.vectors.sampling import Distinct

PAIRS = "pairs.npy"
_PAIR = np.dtype([("word", np.int32), ("context", np.int32), ("count", np.float32)])


class Glove:
    """The fit of word vectors w, context vectors c and biases: w_i c_j + b_i + b_j = log x_ij, weighted (equation 8).

    AdaGrad as in glove.c of version 1.2: its sums begin at 1 and hold the squares of learning_rate * gradient. Today's
    also clips each number of a gradient to 100, and leaves the learning rate out of the updates of the biases.

    Args, attributes: as `NegativeSampling`; the algorithm is a `GloveConfig`.

    Example:
        from bert_tf.vectors.corpus import encode

        encode(["to be or not to be"], whole_word_tokenizer(["be", "to", "not", "or"]), "words", row_words=1000)
        settings = VectorsConfig(GloveConfig(size=8))
        Glove.prepare(settings, "words")
        Glove(settings, "words", Glove.initial_tables(settings, 4)).train(epoch=0, block=0, progress=0.0)
    """

    unit = "pairs"

    def __init__(self, config, folder, tables):
        self.config, self._tables = config.algorithm, tables
        self._pairs = np.load(Path(folder) / PAIRS, mmap_mode="r")
        self._block = config.train.block_words
        self.num_blocks = -(-len(self._pairs) // self._block)
        self._distinct = Distinct(len(tables["words"]))

    @staticmethod
    def prepare(config, folder):
        """Writes the pairs of words that meet, in an order that is drawn once, as GloVe's `shuffle` does."""
        folder = Path(folder)
        if is_there(folder / PAIRS):
            return
        corpus = EncodedCorpus.open(folder, config.algorithm.memory_words)
        progress = Progress("counting pairs of words", int(corpus.rows[-1]), "words")
        counts = count_pairs(corpus, config.algorithm.window, progress)
        progress.finish(f"{counts.nnz:,} different pairs")
        if not counts.nnz:
            raise DataError("no two words of the vocabulary meet; give more text, or lower vocabulary.min_count")
        pairs = np.empty(counts.nnz, _PAIR)
        pairs["word"], pairs["context"], pairs["count"] = counts.row, counts.col, counts.data
        np.random.default_rng([config.train.seed, 1]).shuffle(pairs)
        with atomic_write(folder / PAIRS, "wb") as file:
            np.save(file, pairs)

    @staticmethod
    def initial_tables(config, vocabulary_size):
        """dict of float32 arrays: vectors and biases uniform in +-0.5 / size, the sums of AdaGrad ones."""
        size, random = config.algorithm.size, np.random.default_rng([config.train.seed])
        shapes = {"words": (vocabulary_size, size), "contexts": (vocabulary_size, size)}
        shapes |= {"word_biases": (vocabulary_size, 1), "context_biases": (vocabulary_size, 1)}
        draw = lambda shape: (random.random(shape, np.float32) - np.float32(0.5)) / np.float32(size)  # noqa: E731
        tables = {name: draw(shape) for name, shape in shapes.items()}
        return tables | {f"{name}_squares": np.ones(shape, np.float32) for name, shape in shapes.items()}

    @staticmethod
    def vectors(tables):
        """The sum of word and context vectors (section 4.2): float32 [V, size]."""
        return tables["words"] + tables["contexts"]

    def size(self, block):
        """The pairs of a block."""
        return min(self._block, len(self._pairs) - block * self._block)

    def train(self, epoch, block, progress):
        """As `NegativeSampling.train`; every epoch has the same pairs in the same order."""
        pairs, loss = np.array(self._pairs[block * self._block : (block + 1) * self._block]), 0.0
        for begin in range(0, len(pairs), self.config.update_pairs):
            loss += self._update(pairs[begin : begin + self.config.update_pairs])
        return {"loss": loss, "pairs": len(pairs)}

    def _update(self, pairs):
        config, tables = self.config, self._tables
        words, rows = self._distinct(pairs["word"])
        contexts, columns = self._distinct(pairs["context"])
        w, c = tables["words"].take(words, 0), tables["contexts"].take(contexts, 0)
        wi, cj = w.take(rows, 0), c.take(columns, 0)
        biases = tables["word_biases"][words, 0][rows] + tables["context_biases"][contexts, 0][columns]
        error = np.einsum("nd,nd->n", wi, cj) + biases - np.log(pairs["count"])
        weighted = np.minimum(1, (pairs["count"] / np.float32(config.x_max)) ** np.float32(config.alpha)) * error
        step = np.float32(config.learning_rate) * weighted
        ones = np.ones((len(pairs), 1), np.float32)
        of_word = _sums(step, rows, len(words)), words
        of_context = _sums(step, columns, len(contexts)), contexts
        for name, (sums, places), others in (
            ("words", of_word, cj),
            ("contexts", of_context, wi),
            ("word_biases", of_word, ones),
            ("context_biases", of_context, ones),
        ):
            squares = tables[f"{name}_squares"].take(places, 0)
            change = sums @ others
            tables[name][places] = tables[name].take(places, 0) - change / np.sqrt(squares)
            squared = csr_array((sums.data**2, sums.indices, sums.indptr), shape=sums.shape)
            tables[f"{name}_squares"][places] = squares + squared @ others**2
        return 0.5 * float(np.sum(weighted * error, dtype=np.float64))


def _sums(values, rows, count):
    """A matrix that sums vectors of pairs, each times its value, by rows: [count, pairs]."""
    pairs = np.arange(len(values), dtype=np.int32)
    return csr_array(coo_array((values, (rows, pairs)), shape=(count, len(values))))


def count_pairs(corpus, window, progress=None):
    """How often words meet: each pair of words at a distance up to `window` counts 1 / distance, in both orders.

    Args:
        corpus: an `EncodedCorpus`; its blocks are counted one after the other.
        window: the largest distance.
        progress: a `Progress` in words, or None.

    Returns:
        A `scipy.sparse.coo_array` float64 [V, V], symmetric.
    """
    size = len(corpus.counts)
    total, done = csr_array((size, size)), 0
    for block in range(corpus.num_blocks):
        words, rows = corpus.block(block)
        parts = [[], [], []]  # the counts, the words and the words after them
        for distance in range(1, min(window, len(words) - 1) + 1):
            together = rows[distance:] == rows[:-distance]
            earlier, later = words[:-distance][together], words[distance:][together]
            for values, some in zip(parts, (np.full(len(earlier), 1 / distance), earlier, later)):
                values.append(some)
        if parts[0]:
            values, earlier, later = map(np.concatenate, parts)
            total = total + csr_array(coo_array((values, (earlier, later)), shape=(size, size)))
        done += len(words)
        if progress is not None:
            progress.update(done)
    return (total + total.T).tocoo()
