"""Has a word the same sense in two texts? The cosine of its vectors against a threshold, layer by layer, on WiC's files.

Pilehvar and Camacho-Collados 2019, section 4: nothing is trained but the threshold. A context-free vector is the same
    in
both texts, and cannot tell.
"""

import dataclasses

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.word_uses import WordUse, use_vectors
from bert_tf.tasks.config import ColumnsConfig
from bert_tf.tasks.word_pairs.files import LABELS, read_word_pairs


@dataclasses.dataclass(frozen=True)
class WicResult:
    """How well cosines tell whether a word has one sense in two texts.

    Attributes:
        accuracy: tuple of float, on the test file, by layer, that of the embeddings first.
        threshold: tuple of float, by layer: a pair with a higher cosine has one sense. It has the highest accuracy on
            the training file.
        one_sense, two_senses: tuple of float, the mean cosines of such pairs of the test file, by layer.
        layer: int, the layer with the highest accuracy on the training file, the lowest of several.
        baseline: float, the accuracy of always giving the more frequent label of the training file.
        pairs: int, of the test file.

    Example:
        pairs = read_wic("WiC/train.jsonl"), read_wic("WiC/val.jsonl")
        result = run_wic(encoder, tokenizer, *pairs)
        result.accuracy[result.layer], result.baseline
    """

    accuracy: tuple
    threshold: tuple
    one_sense: tuple
    two_senses: tuple
    layer: int
    baseline: float
    pairs: int


def read_wic(path, most=None):
    """The pairs of a file of SuperGLUE's WiC, a list of (`WordUse`, `WordUse`, bool: one sense).

    Args:
        path: train.jsonl or val.jsonl; the rows of test.jsonl have no labels.
        most: the first so many pairs; None for all.

    Raises:
        DataError: as of `read_word_pairs`; also a row with one text, as WSC has.
    """
    found = read_word_pairs(path, ColumnsConfig(), labelled=True)
    if found.text_pairs is None:
        raise DataError(f"{path} has one text in a row; WiC's files have sentence1 and sentence2")
    rows = list(zip(zip(found.texts, found.text_pairs), found.details, found.labels))[:most]
    return [
        (*(WordUse(texts[m.text], m.start, m.end) for m in marks), label == LABELS[1]) for texts, marks, label in rows
    ]


def run_wic(encoder, tokenizer, train, test, batch_size=32, progress=None):
    """The `WicResult` of a model.

    Args:
        encoder: an encoder or decoder that can give the outputs of its layers. A decoder sees the text before a word
            alone.
        tokenizer: of its pretraining.
        train, test: lists of pairs, of `read_wic`.
        batch_size: texts computed together.
        progress: function(texts done, all); None for nothing.

    Raises:
        ConfigError: a model that does not give the outputs of its layers.
        DataError: a word of which the tokenizer keeps nothing.
    """
    pairs = [*train, *test]
    vectors = use_vectors(encoder, tokenizer, [use for pair in pairs for use in pair[:2]], batch_size, progress)
    first, second = vectors[:, ::2].astype(np.float64), vectors[:, 1::2].astype(np.float64)
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosines = np.einsum("lnh,lnh->ln", first, second) / np.maximum(norms, 1e-30)
    labels, count = np.array([pair[2] for pair in pairs]), len(train)
    chosen = [best_threshold(of_layer, labels[:count]) for of_layer in cosines[:, :count]]
    known, of_test = labels[count:], cosines[:, count:]
    return WicResult(
        accuracy=tuple(float(np.mean((x > threshold) == known)) for x, (threshold, _) in zip(of_test, chosen)),
        threshold=tuple(threshold for threshold, _ in chosen),
        one_sense=_means(of_test, known),
        two_senses=_means(of_test, ~known),
        layer=int(np.argmax([accuracy for _, accuracy in chosen])),
        baseline=float(np.mean(known == (labels[:count].mean() >= 0.5))),
        pairs=len(test),
    )


#: Of a cosine of float32 vectors.
ROUNDING = 1e-6


def best_threshold(values, labels):
    """(threshold, accuracy): values above the threshold are taken for True; the lowest of the thresholds that are best.

    It lies halfway between two neighbouring values, or 1 beyond the outermost ones.

    Args:
        values: float [N]; labels: bool [N].

    Example:
        best_threshold(np.array([0.1, 0.9, 0.4]), np.array([False, True, False]))  # (0.65, 1.0)
    """
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    between = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])
    # With the threshold below number i, the values before it are False and the others True.
    right = np.concatenate([[0], np.cumsum(~labels)]) + np.concatenate([np.cumsum(labels[::-1])[::-1], [0]])
    # Values that differ by rounding alone are equal, and cannot be told apart.
    possible = np.concatenate([[True], values[1:] - values[:-1] > ROUNDING, [True]])
    best = int(np.argmax(np.where(possible, right, -1)))
    return float(between[best]), float(right[best] / len(labels))


def wic_table(result, control=None):
    """The `ProbeTable` of a `WicResult`, beside that of random weights.

    Example:
        result = WicResult((0.5, 0.6), (0.9, 0.8), (0.9, 0.9), (0.9, 0.7), layer=1, baseline=0.5, pairs=638)
        wic_table(result).lines()
    """
    from bert_tf.probing.layer_charts import layer_chart
    from bert_tf.probing.tables import ProbeTable

    rows = [("accuracy", [*result.accuracy, result.baseline])]
    if control:
        rows.append(("accuracy: random weights", [*control.accuracy, None]))
    rows += [("cosine, one sense", [*result.one_sense, None]), ("cosine, two senses", [*result.two_senses, None])]
    note = (
        f"{result.pairs} pairs, by layer; 0 is the output of the embeddings. Layer {result.layer} is the best on the training "
        f"file; its accuracy is {result.accuracy[result.layer]:.3f}, with a standard error of "
        f"{(result.accuracy[result.layer] * (1 - result.accuracy[result.layer]) / result.pairs) ** 0.5:.3f}."
    )
    lines = {"model": result.accuracy, "random": control and control.accuracy}
    figures = [layer_chart("accuracy", lines, {"baseline": result.baseline})]
    columns = [*map(str, range(len(result.accuracy))), "baseline"]
    return ProbeTable("word in context", columns, rows, note, figures, bars=False)


def _means(cosines, chosen):
    return tuple(float(of_layer[chosen].mean()) if chosen.any() else float("nan") for of_layer in cosines)
