"""Which attention heads follow dependency relations, fixed offsets and special tokens (Clark et al. 2019).

Relations, section 4.2, with the choices of the authors' notebook (clarkkev/attention-analysis): the word that a word
looks at most is taken for its head, or, in the other direction, the word that looks at it most; itself and special
tokens left out. Beside the best head stands the best fixed offset. Positions and special tokens, section 3: the mean
attention of a token.
"""

import collections
import itertools

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.attention import between_words, words_of_row
from bert_tf.probing.head_grid import head_grid
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import ProbeTable
from bert_tf.probing.trees import read_trees

#: The offsets of the baseline: five words to the left to five to the right.
OFFSETS = [*range(-5, 0), *range(1, 6)]
DIRECTIONS = ("dependent looks at head", "head looks at dependent")
ALL = "all"


class HeadRelations(Probe):
    """Which attention heads follow dependency relations? The accuracy of the best head for each.

    Attention to a split word is the sum over its tokens, attention from it their mean. Beside the best head stand the best
    fixed offset, 1 is the next word, and the best head of random weights. "all" is over all words but roots and
    punctuation. Facts: "relations", float [2][layers][heads], the accuracy of each head in each of `DIRECTIONS`; "count",
    "skipped", the sentences that were read, and those that were too long for the model.

    Example:
        tree = DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3)
        HeadRelations().run(LayerReader(encoder, tokenizer), [tree])["det"]["best head"]
    """

    name, title, asks, unit = "heads", "attention to relations", "layers", "sentences"

    def read(self, path, most=None):
        """As `read_trees`."""
        return read_trees(path, most)

    def run(self, reader, trees, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            ConfigError: a model that cannot give its attention.
            DataError: no sentence fits into the model's positions.
        """
        hits, offsets, count_read = {}, {}, 0
        for tree, pieces, weights in _attention(reader, trees, progress):
            words = np.repeat(np.arange(len(pieces)) + 1, [len(of_word) for of_word in pieces])
            numbers = words_of_row(reader.tokenizer, [words], weights.shape[-1])
            _add_relations(between_words(weights, numbers), tree, reader.tokenizer.layout, hits, offsets)
            count_read += 1
        rows = []
        for name in sorted(hits, key=lambda name: (name != ALL, -offsets[name].total())):
            count = offsets[name].total()
            hits[name] = hits[name] / count
            direction, layer, head = np.unravel_index(np.argmax(hits[name]), hits[name].shape)
            offset = max(OFFSETS, key=offsets[name].__getitem__)
            accuracies = float(hits[name].max()), offsets[name][offset] / count, None
            where = f"{layer + 1}-{head + 1}", DIRECTIONS[direction], f"{offset:+}"
            rows.append((name, [*accuracies, *where, count]))
        skipped = len(trees) - count_read
        left_out = f" {skipped} sentences were too long for the model." if skipped else ""
        note = (
            "Accuracy of “the word with the most attention is the head (or the dependent)”, of the best head, chosen on the "
            f"same sentences; offset: of the best fixed distance; random: of the best head of random weights.{left_out}"
        )
        columns = ["best head", "offset", "random", "layer-head", "direction", "best offset", "words"]
        facts = {"relations": {name: hits[name].tolist() for name, _ in rows}, "count": count_read, "skipped": skipped}
        return ProbeTable(self.title, columns, rows, note, facts=facts)


class HeadPositions(HeadRelations):
    """Which attention heads look at the previous token, the next one, and special tokens?

    Rows: the mean attention of a token of the text; special tokens do not count. "uniform": that of attention that is
    spread evenly over the tokens of a sequence, of a decoder over a token and those before it. Facts: "patterns", float
    [layers][heads], of each head.

    Example:
        tree = DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3)
        HeadPositions().run(LayerReader(encoder, tokenizer), [tree])["next token"]["uniform"]
    """

    name, title = "positions", "attention to positions"

    def run(self, reader, trees, progress=None):
        sums, rows, figures, patterns = {}, [], [], {}
        for _, _, weights in _attention(reader, trees, progress):
            _add_patterns(weights, reader.tokenizer.layout, sums, reader.encoder.structure == "decoder")
        for name, (total, even, number) in sums.items():
            values = total / number
            layer, head = np.unravel_index(np.argmax(values), values.shape)
            others = f"{layer + 1}-{head + 1}", float(values.mean()), int((values > 0.5).sum())
            rows.append((name, [float(values.max()), float(even / number), None, *others]))
            figures.append(head_grid(name, values))
            patterns[name] = values.tolist()
        note = "Mean attention of a token. best head: the largest mean; uniform: of attention that is spread evenly."
        columns = ["best head", "uniform", "random", "layer-head", "mean of heads", "heads above 0.5"]
        return ProbeTable(self.title, columns, rows, note, figures, facts={"patterns": patterns})


def _attention(reader, trees, progress):
    """Yields (tree, pieces of its words, attention [layers, heads, S, S] of its tokens, special ones too)."""
    pieces = reader.pieces([tree.words for tree in trees])
    if not pieces:
        raise DataError(f"each of the {len(trees)} sentences has more than the {reader.room} tokens of the model")
    indexes, sequences = list(pieces), [list(itertools.chain(*of_sentence)) for of_sentence in pieces.values()]
    for index, weights in reader.attention(sequences, progress):
        yield trees[indexes[index]], pieces[indexes[index]], weights


def _add_relations(weights, tree, layout, hits, offsets):
    """Adds the words of a sentence; `weights` is [layers, heads, W, W] between words, special tokens too."""
    size, before = len(tree.words), len(layout.before_first)
    between = weights[:, :, before : before + size, before : before + size].copy()
    between[:, :, range(size), range(size)] = -1
    predicted = np.stack([between.argmax(axis=-1), between.argmax(axis=-2)])  # [2, layers, heads, W]
    right = (predicted == np.array(tree.heads)).astype(np.int64)
    for word, (head, relation, mark) in enumerate(zip(tree.heads, tree.relations, tree.punctuation)):
        for name in () if head < 0 else (relation,) if mark else (relation, ALL):
            hits[name] = hits.get(name, 0) + right[..., word]
            offsets.setdefault(name, collections.Counter())[head - word] += 1


def _add_patterns(weights, layout, sums, causal):
    """Adds the attention of the tokens of the text, special ones left out; `weights` is [layers, heads, S, S]."""
    size, before, after = weights.shape[-1], len(layout.before_first), len(layout.after_first) + len(layout.at_end)
    text = np.arange(before, size - after)
    even = np.tril(np.ones((size, size))) if causal else np.ones((size, size))
    even /= even.sum(axis=1, keepdims=True)
    places = {"previous token": (text[1:], text[:-1]), "next token": (text[:-1], text[1:])}
    places["the same token"] = text, text
    sums_of_text = {
        name: (weights[:, :, a, b].sum(axis=-1), even[a, b].sum(), len(a)) for name, (a, b) in places.items()
    }
    edges = {"special tokens before the text": np.arange(before)}
    edges["special tokens after the text"] = np.arange(size - after, size)
    for name, places in edges.items():
        if len(places):
            to_special = weights[:, :, text][..., places].sum(axis=(-2, -1))
            sums_of_text[name] = (to_special, even[text][:, places].sum(), len(text))
    for name, numbers in sums_of_text.items():
        sums[name] = tuple(a + b for a, b in zip(sums.get(name, (0, 0, 0)), numbers))
