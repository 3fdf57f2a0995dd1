"""The settings of word vectors. No TensorFlow is imported here, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range

Width = Annotated[int, Range(at_least=1, at_most=65_536)]
Window = Annotated[int, Range(at_least=1, at_most=1000)]
Epochs = Annotated[int, Range(at_least=1, at_most=1_000_000)]
Positive = Annotated[float, Range(above=0)]


@dataclasses.dataclass(frozen=True)
class AlgorithmConfig:
    """The base of the settings of an algorithm: the section `algorithm`, chosen by its `name`.

    Attributes:
        name: "skip_gram", "cbow" or "glove".
        size: dimensions of a vector.
        window: the words to the left and to the right that are the context of a word.
        epochs: passes over the corpus; of GloVe, over the pairs of words that were counted.
        learning_rate: of the first update.
    """

    CHOSEN_BY: ClassVar[str] = "name"

    name: str = "skip_gram"
    size: Width = 100
    window: Window = 5
    epochs: Epochs = 5
    learning_rate: Positive = 0.025

    @classmethod
    def choices(cls):
        """Name -> settings of every algorithm, for `bert_tf.config.build`."""
        return {config.name: config for config in (SkipGramConfig, CbowConfig, GloveConfig)}


@dataclasses.dataclass(frozen=True)
class SkipGramConfig(AlgorithmConfig):
    """Skip-gram with negative sampling (Mikolov et al. 2013, "Distributed Representations", section 2.2).

    The defaults are those of word2vec.c. Two things differ: the negatives of a word are drawn once and shared by the
    words of its window (Ji et al. 2016, "Parallelizing Word2Vec in Shared and Distributed Memory", section 3.1), and a
    window is one update, even with `update_words=1`, where word2vec.c updates after each pair. Measured on one corpus, the
    vectors come out shorter (a mean norm of 1.66 for 1.88) and less alike (a mean cosine of 0.472 for 0.574); the ranks of
    the similarities correlate by 0.945 with those of word2vec.c, where two seeds of the latter have 0.961.

    Attributes:
        window: the largest window. The window of each word is drawn from 1 to this number.
        learning_rate: falls linearly with the words that were read, to `last_rate` times this.
        last_rate: the smallest rate, as a part of the first.
        subsample: t of section 2.3. A word with a part f of the corpus is kept with probability
            (sqrt(f / t) + 1) * t / f, as in word2vec.c; 0 keeps all.
        negatives: words that are drawn for each word; those that equal it do not count.
        negative_power: negatives are drawn in proportion to count ^ this.
        update_words: words whose gradients are computed before the vectors are updated, those of a window together.
            word2vec.c updates after each pair.

    Example:
        SkipGramConfig(size=300, window=8, negatives=25)
    """

    name: str = "skip_gram"
    last_rate: Annotated[float, Range(at_least=0, at_most=1)] = 1e-4
    subsample: Annotated[float, Range(at_least=0, at_most=1)] = 1e-3
    negatives: Annotated[int, Range(at_least=1, at_most=1000)] = 5
    negative_power: Annotated[float, Range(at_least=0)] = 0.75
    update_words: Annotated[int, Range(at_least=1, at_most=100_000)] = 64


@dataclasses.dataclass(frozen=True)
class CbowConfig(SkipGramConfig):
    """Continuous bag of words with negative sampling (Mikolov et al. 2013, "Efficient Estimation", section 3.1).

    The defaults are those of word2vec.c.

    Attributes:
        learning_rate: falls linearly with the words that were read, to `last_rate` times this.
        divided_gradient: the context is the mean of n vectors. False: each of them gets the whole gradient of the mean,
            as in word2vec.c; true: the n-th part of it, which is the derivative.

    Example:
        CbowConfig(divided_gradient=True)
    """

    name: str = "cbow"
    learning_rate: Positive = 0.05
    update_words: Annotated[int, Range(at_least=1, at_most=100_000)] = 256
    divided_gradient: bool = False


@dataclasses.dataclass(frozen=True)
class GloveConfig(AlgorithmConfig):
    """GloVe (Pennington et al. 2014): a weighted least-squares fit of the logarithms of how often words meet.

    The defaults are those of stanfordnlp/GloVe, `cooccur.c` and `glove.c`. The result is the sum of the two vectors of
    each word.

    Attributes:
        window: the words to the left and to the right that are counted, with 1 / distance each.
        learning_rate: of AdaGrad; it does not fall. Of vectors and biases, as in glove.c of version 1.2; today's updates
            biases without it.
        x_max: pairs that meet at least so often have the weight 1 (equation 9).
        alpha: the weight of a pair that meets x times is (x / x_max) ^ alpha.
        update_pairs: pairs whose gradients are computed before the vectors are updated. glove.c updates after each
            pair.
        memory_words: words of the corpus whose pairs are added to the counts at a time. The counts of all different
            pairs are held in memory.

    Example:
        GloveConfig(size=50, x_max=10)
    """

    name: str = "glove"
    window: Window = 15
    epochs: Epochs = 25
    learning_rate: Positive = 0.05
    x_max: Positive = 100.0
    alpha: Positive = 0.75
    update_pairs: Annotated[int, Range(at_least=1, at_most=1 << 20)] = 1024
    memory_words: Annotated[int, Range(at_least=1000)] = 1_000_000


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """The words that get a vector.

    Attributes:
        lowercase: whether the text is lowercased and accents are dropped, as uncased BERT does. False keeps both, and
            Hangul in whole syllables.
        min_count: words that the corpus holds less often are left out, and the text is read without them.
        max_words: at most so many words, the most frequent ones; null for no limit.

    Example:
        VocabularyConfig(lowercase=False, max_words=100_000)
    """

    lowercase: bool = True
    min_count: Annotated[int, Range(at_least=1)] = 5
    max_words: Annotated[int | None, Range(at_least=1)] = None


@dataclasses.dataclass(frozen=True)
class VectorsTrainConfig:
    """How the work is divided, and when it is saved.

    Attributes:
        seed: of the first vectors and of everything that is drawn.
        workers: processes that train at the same time, without waiting for each other, as the threads of word2vec.c;
            null for one on each core. With 1 the result depends on the seed alone, also after an interruption; with
            more it differs a little from run to run.
        block_words: words, of GloVe pairs, that a process is given at a time.
        row_words: documents are cut into rows of at most so many words, across which no window reaches.
        checkpoint_seconds: after so many seconds a checkpoint is saved, and after each epoch. It changes no result.

    Example:
        VectorsTrainConfig(workers=1)
    """

    seed: Annotated[int, Range(at_least=0, below=2**32)] = 0
    workers: Annotated[int | None, Range(at_least=1, at_most=1024)] = None
    block_words: Annotated[int, Range(at_least=100)] = 10_000
    row_words: Annotated[int, Range(at_least=2)] = 1000
    checkpoint_seconds: Annotated[float, Range(above=0)] = 300.0


@dataclasses.dataclass(frozen=True)
class VectorsConfig:
    """Word vectors, as in configs/vectors/*.yaml.

    Attributes:
        algorithm: how the vectors are trained; `name` chooses.
        vocabulary: the words that get a vector.
        train: seed, division of the work, checkpoints.

    Example:
        VectorsConfig(GloveConfig(size=50), VocabularyConfig(min_count=10))
    """

    algorithm: AlgorithmConfig = dataclasses.field(default_factory=SkipGramConfig)
    vocabulary: VocabularyConfig = VocabularyConfig()
    train: VectorsTrainConfig = VectorsTrainConfig()
