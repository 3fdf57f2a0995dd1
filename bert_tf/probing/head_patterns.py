"""Which attention heads follow dependency relations, fixed offsets and special tokens (Clark et al. 2019).

Relations, section 4.2, with the choices of the authors' notebook (clarkkev/attention-analysis): the word that a word
looks at most is taken for its head, or, in the other direction, the word that looks at it most; itself and special
tokens left out. Beside the best head stands the best fixed offset. Positions and special tokens, section 3: the mean
attention of a token.
"""

import dataclasses

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.attention import between_words, with_attention, words_of_row
from bert_tf.probing.head_grid import head_grid
from bert_tf.probing.layer_charts import grid
from bert_tf.probing.tables import ProbeTable, beside
from bert_tf.probing.token_states import model_rows, output_of, room
from bert_tf.tasks.tagging.sequences import words_of_sentences

#: The offsets of the baseline: from so many words to the left to so many to the right.
MOST_OFFSET = 5
DIRECTIONS = ("dependent looks at head", "head looks at dependent")
ALL = "all"


@dataclasses.dataclass(frozen=True)
class HeadsResult:
    """What the heads of a model look at.

    Attributes:
        relations: {relation: float [2][layers][heads]}, the accuracy of each head in each of `DIRECTIONS`; "all" is
            over all words but roots and punctuation.
        offsets: {relation: (offset, accuracy)}, of the best fixed offset; 1 is the next word.
        counts: {relation: int}.
        patterns: {name: float [layers][heads]}, the mean attention of a token to the previous token, and so on.
        uniform: {name: float}, the same of attention that is spread evenly over the tokens of a sequence; of a
            decoder, over a token and those before it.
        count, skipped: int, sentences that were read, and those that were too long for the model.

    Example:
        tree = DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3)
        result = run_heads(encoder, tokenizer, [tree])
        result.best("det"), result.offsets["det"]
    """

    relations: dict
    offsets: dict
    counts: dict
    patterns: dict
    uniform: dict
    count: int
    skipped: int

    def best(self, relation):
        """(accuracy, index of the direction, layer, head) of the best head; layers and heads count from 1."""
        values = np.array(self.relations[relation])
        direction, layer, head = np.unravel_index(np.argmax(values), values.shape)
        return float(values.max()), int(direction), int(layer) + 1, int(head) + 1


def run_heads(encoder, tokenizer, trees, batch_size=32, progress=None):
    """The `HeadsResult` of a model. Attention to a split word is the sum over its tokens, attention from it their mean.

    Args:
        encoder: an encoder or decoder that can give its attention.
        tokenizer: of its pretraining.
        trees: list of `DependencyTree`.
        batch_size: sentences computed together.
        progress: function(sentences done, all); None for nothing.

    Raises:
        ConfigError: a model that cannot give its attention.
        DataError: no sentence fits into the model's positions.
    """
    encoder, most = with_attention(encoder), room(encoder, tokenizer)
    pieces = [words.pieces for words in words_of_sentences(tokenizer, [tree.words for tree in trees])]
    kept = [i for i, own in enumerate(pieces) if sum(map(len, own)) <= most]
    if not kept:
        raise DataError(
            f"each of the {len(trees)} sentences has more than {most} tokens, for which the model has no room"
        )
    compute = output_of(encoder, tokenizer, "attention_scores")
    sequences = [[piece for own in pieces[i] for piece in own] for i in kept]
    hits, counts, offsets, sums, done = {}, {}, {}, {}, 0
    for chosen, features in model_rows(tokenizer, sequences, batch_size):
        scores = np.stack(compute(features)).astype(np.float32)  # [layers, B, heads, S, S]
        for row, index in enumerate(chosen):
            own, tree = pieces[kept[index]], trees[kept[index]]
            words = np.repeat(np.arange(len(own)) + 1, [len(x) for x in own])
            numbers = words_of_row(tokenizer, [words], len(words) + tokenizer.layout.special_tokens_per_sequence)
            weights = scores[:, row, :, : len(numbers), : len(numbers)]
            _add_relations(between_words(weights, numbers), tree, tokenizer.layout, hits, counts, offsets)
            _add_patterns(weights, tokenizer.layout, sums, encoder.structure == "decoder")
        done += len(chosen)
        if progress is not None:
            progress(done, len(kept))
    best = {name: max(found, key=found.get) - MOST_OFFSET for name, found in offsets.items()}
    order = sorted(counts, key=lambda name: (name != ALL, -counts[name]))
    return HeadsResult(
        relations={name: (hits[name] / counts[name]).tolist() for name in order},
        offsets={name: (best[name], offsets[name][best[name] + MOST_OFFSET] / counts[name]) for name in order},
        counts={name: counts[name] for name in order},
        patterns={name: (total / number).tolist() for name, (total, _, number) in sums.items()},
        uniform={name: float(even / number) for name, (_, even, number) in sums.items()},
        count=len(kept),
        skipped=len(trees) - len(kept),
    )


def _add_relations(weights, tree, layout, hits, counts, offsets):
    """Adds the words of a sentence; `weights` is [layers, heads, W, W] between words, special tokens too."""
    size, before = len(tree.words), len(layout.before_first)
    own = weights[:, :, before : before + size, before : before + size].copy()
    own[:, :, range(size), range(size)] = -1
    predicted = np.stack([own.argmax(axis=-1), own.argmax(axis=-2)])  # [2, layers, heads, W]
    right, heads = predicted == np.array(tree.heads), np.array(tree.heads)
    for word, (head, relation, mark) in enumerate(zip(heads, tree.relations, tree.punctuation)):
        if head < 0:
            continue
        for name in (relation,) if mark else (relation, ALL):
            hits[name] = hits.get(name, 0) + right[..., word].astype(np.int64)
            counts[name] = counts.get(name, 0) + 1
            of_offsets = offsets.setdefault(
                name, dict.fromkeys((i for i in range(2 * MOST_OFFSET + 1) if i != MOST_OFFSET), 0)
            )
            offset = int(head) - word + MOST_OFFSET
            if offset in of_offsets:
                of_offsets[offset] += 1


def _add_patterns(weights, layout, sums, causal):
    """Adds the attention of the tokens of the text, special ones left out; `weights` is [layers, heads, S, S]."""
    size, before, after = weights.shape[-1], len(layout.before_first), len(layout.after_first) + len(layout.at_end)
    text = np.arange(before, size - after)
    even = np.tril(np.ones((size, size))) if causal else np.ones((size, size))
    even /= even.sum(axis=1, keepdims=True)
    places = {
        "previous token": (text[1:], text[:-1]),
        "next token": (text[:-1], text[1:]),
        "the same token": (text, text),
    }
    found = {name: (weights[:, :, a, b].sum(axis=-1), even[a, b].sum(), len(a)) for name, (a, b) in places.items()}
    edges = {
        "special tokens before the text": np.arange(before),
        "special tokens after the text": np.arange(size - after, size),
    }
    for name, places in edges.items():
        if len(places):
            own = weights[:, :, text][..., places].sum(axis=(-2, -1))
            found[name] = (own, even[text][:, places].sum(), len(text))
    for name, numbers in found.items():
        sums[name] = tuple(a + b for a, b in zip(sums.get(name, (0, 0, 0)), numbers))


def relations_table(result, control=None):
    """The `ProbeTable` of the relations of a `HeadsResult`, beside that of random weights.

    Example:
        tree = DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3)
        relations_table(run_heads(encoder, tokenizer, [tree])).lines()
    """
    rows = []
    for name in result.relations:
        accuracy, direction, layer, head = result.best(name)
        offset, baseline = result.offsets[name]
        random = beside(control, lambda c: c.best(name)[0])
        where = f"{layer}-{head}", DIRECTIONS[direction], f"{offset:+}"
        rows.append((name, [accuracy, baseline, random, *where, result.counts[name]]))
    left_out = f" {result.skipped} sentences were too long for the model." if result.skipped else ""
    note = (
        "Accuracy of “the word with the most attention is the head (or the dependent)”, of the best head for each relation, chosen "
        "on the same sentences; offset: the word that stands at the best fixed distance; random: the best head of random weights, "
        f"which shows what the choice alone gains.{left_out}"
    )
    columns = ["best head", "offset", "random", "layer-head", "direction", "best offset", "words"]
    return ProbeTable("attention to relations", columns, rows, note)


def patterns_table(result, control=None):
    """The `ProbeTable` of the positions and special tokens of a `HeadsResult`, with a grid of all heads for each.

    Example:
        tree = DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3)
        patterns_table(run_heads(encoder, tokenizer, [tree])).lines()
    """
    rows, figures = [], []
    for name, values in result.patterns.items():
        values = np.array(values)
        layer, head = np.unravel_index(np.argmax(values), values.shape)
        random = beside(control, lambda c: float(np.max(c.patterns[name])))
        best = f"{layer + 1}-{head + 1}"
        others = float(values.mean()), int((values > 0.5).sum())
        rows.append((name, [float(values.max()), result.uniform[name], random, best, *others]))
        figures.append(head_grid(name, values))
    note = (
        "Mean attention of a token. best head: the largest mean of a head; uniform: of attention spread evenly over what a "
        "token sees; random: the best head of random weights."
    )
    columns = ["best head", "uniform", "random", "layer-head", "mean of heads", "heads above 0.5"]
    return ProbeTable("attention to positions", columns, rows, note, [grid(figures)])
