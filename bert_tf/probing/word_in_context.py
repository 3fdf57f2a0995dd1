"""Has a word the same sense in two texts? The cosine of its vectors against a threshold, layer by layer, on WiC's files.

Pilehvar and Camacho-Collados 2019, section 4: nothing is trained but the threshold. A context-free vector is the same
in both texts, and cannot tell.
"""

import numpy as np

from bert_tf.errors import DataError
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import layer_table
from bert_tf.probing.word_uses import WordUse, use_vectors
from bert_tf.tasks.rows.columns_config import ColumnsConfig
from bert_tf.tasks.rows.opening import open_objects
from bert_tf.tasks.word_pairs.files import LABELS, read_word_pairs


class WordInContext(Probe):
    """Has a word the same sense in two texts? By the cosine of its vectors against a threshold, layer by layer.

    Rows: the accuracy on the test file, beside that of always giving the more frequent label of the training file, and the
    mean cosines of the pairs of one sense and of two. Facts: "threshold", by layer, the one with the highest accuracy on
    the training file, a pair with a higher cosine has one sense; "layer", the layer with the highest accuracy there, the
    lowest of several; "pairs", of the test file.

    Example:
        probe = WordInContext()
        pairs = probe.read("WiC/train.jsonl", "WiC/val.jsonl")
        probe.run(LayerReader(encoder, tokenizer), pairs)["accuracy"]["baseline"]
    """

    name, title, asks = "wic", "word in context", "layers"

    def read(self, train, test, most=None):
        """For each of two labelled files of SuperGLUE's WiC a list of (`WordUse`, `WordUse`, bool: one sense).

        Args:
            train, test: train.jsonl and val.jsonl; the rows of test.jsonl have no labels.
            most: the first so many pairs of each; None for all.

        Raises:
            DataError: as of `read_word_pairs`; also a row with one text, as WSC has.
        """
        return [_read(path, most) for path in (train, test)]

    def run(self, reader, parts, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            ConfigError: a model that does not give the outputs of its layers.
            DataError: a word of which the tokenizer keeps nothing.
        """
        pairs, count = [*parts[0], *parts[1]], len(parts[0])
        vectors = use_vectors(reader, [use for pair in pairs for use in pair[:2]], progress)
        first, second = vectors[:, ::2].astype(np.float64), vectors[:, 1::2].astype(np.float64)
        norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
        cosines = np.einsum("lnh,lnh->ln", first, second) / np.maximum(norms, 1e-30)
        labels = np.array([pair[2] for pair in pairs])
        threshold, of_train = zip(*(best_threshold(of_layer, labels[:count]) for of_layer in cosines[:, :count]))
        true, of_test, layer = labels[count:], cosines[:, count:], int(np.argmax(of_train))
        accuracy = [float(np.mean((x > border) == true)) for x, border in zip(of_test, threshold)]
        rows = {"accuracy": (accuracy, float(np.mean(true == (labels[:count].mean() >= 0.5))))}
        rows["cosine, one sense"] = _means(of_test, true), None
        rows["cosine, two senses"] = _means(of_test, ~true), None
        error = (accuracy[layer] * (1 - accuracy[layer]) / len(true)) ** 0.5
        note = (
            f"{len(true)} pairs. Layer {layer}, the best on the training file, has {accuracy[layer]:.3f} ± {error:.3f}."
        )
        facts = {"threshold": threshold, "layer": layer, "pairs": len(true)}
        return layer_table(self.title, rows, "baseline", note, curves=("accuracy",), facts=facts)


def _read(path, most):
    table = open_objects(path, ColumnsConfig(), "wic reads the .jsonl files of WiC")
    pairs = read_word_pairs(table, ColumnsConfig(), labelled=True)
    if pairs.text_pairs is None:
        raise DataError(f"{path} has one text in a row; WiC's files have sentence1 and sentence2")
    rows = list(zip(zip(pairs.texts, pairs.text_pairs), pairs.details, pairs.labels))[:most]
    return [
        (*(WordUse(texts[m.text], m.start, m.end) for m in marks), label == LABELS[1]) for texts, marks, label in rows
    ]


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


def _means(cosines, chosen):
    return tuple(float(of_layer[chosen].mean()) if chosen.any() else float("nan") for of_layer in cosines)
