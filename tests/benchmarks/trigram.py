"""An interpolated trigram model beside a run of causal LM or denoising: the loss that the run must beat.

    python tests/benchmarks/trigram.py RUN

Counts the tokens that the run has predicted, in the shards that it was trained on, and prints the loss on its held-out
shards of a unigram model and of trigrams by interpolated Kneser-Ney smoothing (Chen and Goodman 1999, one discount for
each order, n1 / (n1 + 2 n2)). All see what the model sees: the two tokens before a target in the same row.
"""

import argparse
from pathlib import Path

import numpy as np

from bert_tf import config
from bert_tf.objectives import OBJECTIVES
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training.pretrain_config import PretrainConfig
from tfrecords import ShardReader


class Trigrams:
    """Interpolated Kneser-Ney over ids below V; V itself is the token before a text.

    Args:
        grams: int [N, 3], the trigrams of the training text.
        vocabulary_size: V.
    """

    def __init__(self, grams, vocabulary_size):
        self.size = vocabulary_size
        self.base = vocabulary_size + 1
        self.trigrams = _Order(self._key(grams), self._key(grams[:, :2]))
        # The lower orders count in how many different contexts a gram is found.
        kinds = _decoded(self.trigrams.keys, self.base, 3)
        self.bigrams = _Order(self._key(kinds[:, 1:]), kinds[:, 1])
        kinds = _decoded(self.bigrams.keys, self.base, 2)
        self.words = _Order(kinds[:, 1], np.zeros(len(kinds), np.int64))

    def log_probabilities(self, grams):
        """float64 [N] of int [N, 3]."""
        p = self.words.interpolated(grams[:, 2], np.zeros(len(grams), np.int64), 1.0 / self.size)
        p = self.bigrams.interpolated(self._key(grams[:, 1:]), grams[:, 1], p)
        return np.log(self.trigrams.interpolated(self._key(grams), self._key(grams[:, :2]), p))

    def _key(self, grams):
        key = np.zeros(len(grams), np.int64)
        for column in range(grams.shape[1]):
            key = key * self.base + grams[:, column]
        return key


class _Order:
    """The counts of one order: `keys` of grams and of their contexts, one of each for every occurrence."""

    def __init__(self, grams, contexts):
        self.keys, first, self.counts = np.unique(grams, return_index=True, return_counts=True)
        self.contexts, number = np.unique(contexts[first], return_inverse=True)
        self.totals = np.bincount(number, self.counts)
        self.kinds = np.bincount(number)
        once, twice = (self.counts == 1).sum(), (self.counts == 2).sum()
        self.discount = once / max(once + 2 * twice, 1)

    def interpolated(self, grams, contexts, lower):
        """The probabilities of grams, those of the order below in `lower`."""
        counts, found = _at(self.keys, self.counts, grams), _at(self.contexts, self.totals, contexts)
        kinds, total = _at(self.contexts, self.kinds, contexts), np.maximum(found, 1)
        p = np.maximum(counts - self.discount, 0) / total + self.discount * kinds / total * lower
        return np.where(found > 0, p, lower)


def _at(keys, values, wanted):
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def _decoded(keys, base, count):
    return np.stack([keys // base**power % base for power in reversed(range(count))], axis=1)


def grams_of(features, start):
    """int [N, 3]: two tokens and the one that is predicted from them, of a batch of NumPy arrays."""
    if "decoder_token_ids" in features:
        inputs, targets = features["decoder_token_ids"], features["target_ids"]
        counted = features["target_weights"] > 0
        before = np.pad(inputs, [(0, 0), (1, 0)], constant_values=start)[:, :-1]
    else:
        ids, real = features["token_ids"], features["padding_mask"]
        inputs, targets, counted = ids[:, :-1], ids[:, 1:], real[:, :-1] & real[:, 1:]
        before = np.pad(inputs, [(0, 0), (1, 0)], constant_values=start)[:, :-1]
        if "sequence_ids" in features:
            texts = features["sequence_ids"]
            counted &= texts[:, :-1] == texts[:, 1:]
            same = np.pad(texts[:, :-2] == texts[:, 1:-1], [(0, 0), (1, 0)])
            before = np.where(same, before, start)
    return np.stack([x[counted] for x in (before, inputs, targets)], axis=1).astype(np.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--epochs", type=int, default=1, help="how often the training shards are read; noise differs")
    parser.add_argument("--shards", type=Path, help="instead of those of the run, where they were moved")
    parser.add_argument("--eval-shards", type=Path)
    arguments = parser.parse_args()

    settings = config.load(PretrainConfig, arguments.run / "config.yaml")
    tokenizer = load_tokenizer(arguments.run / "tokenizer")
    size, batch = tokenizer.vocabulary_size, settings.train.batch_size

    def grams(shards, batches=-1, **options):
        reader = ShardReader(shards, tokenizer)
        objective = settings.objective.for_shards(reader.manifest.packing, reader.sequence_length)
        corrupt = OBJECTIVES[objective.name].make_corruption(objective, tokenizer, reader)
        data = reader.dataset(batch, settings.train.seed, corrupt=corrupt, **options)
        return np.concatenate([grams_of(features, start=size) for features in data.take(batches).as_numpy_iterator()])

    train = grams(arguments.shards or settings.data.shards, epochs=arguments.epochs)
    eval_shards = arguments.eval_shards or settings.data.eval_shards
    held_out = grams(eval_shards, settings.data.eval_batches, epochs=1, shuffle=False, drop_remainder=False)
    counts = np.bincount(train[:, 2], minlength=size)
    unigram = np.log((counts + 1) / (counts.sum() + size))[held_out[:, 2]]
    model = Trigrams(train, size)
    every = np.array([[*held_out[0, :2], token] for token in range(size)])
    assert abs(np.exp(model.log_probabilities(every)).sum() - 1) < 1e-9
    print(f"{len(train):,} predicted tokens counted, {len(held_out):,} held out")
    for name, log_p in (("unigram", unigram), ("trigram", model.log_probabilities(held_out))):
        print(f"{name}: loss {-log_p.mean():.4f}, perplexity {np.exp(-log_p.mean()):.1f}")


if __name__ == "__main__":
    main()
