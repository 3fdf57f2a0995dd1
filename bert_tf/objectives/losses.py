"""Functions of all objectives: sums of losses, and reading a feature of a batch."""

import math

from keras import ops

from bert_tf.backend import cross_entropy, largest
from bert_tf.errors import DataError
from bert_tf.types import Tensor, Tensors


def cross_entropy_sums(logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """(weighted sum of cross-entropies in nats, weighted number of correct predictions), float32.

    Args: float32 [..., K], int [...], float32 [...].
    """
    labels = ops.cast(labels, "int32")
    guesses = largest(logits)
    correct = ops.cast(ops.equal(guesses, labels), "float32")
    return ops.sum(cross_entropy(logits, labels, guesses) * weights), ops.sum(correct * weights)


def smoothing_sum(logits: Tensor, labels: Tensor, weights: Tensor, smoothing: float, normalization: str) -> Tensor:
    """What label smoothing adds to the loss of `cross_entropy_sums`, float32.

    With it, the loss is the cross-entropy of a distribution that gives `smoothing` to other tokens:
    "tensor2tensor": smoothing / (K - 1) to each wrong one; the entropy of that distribution is subtracted, so that
    the best loss is 0 (`padded_cross_entropy` in tensor2tensor `common_layers.py`).
    "uniform": smoothing / K to each, the right one included (`softmax_cross_entropy_with_logits` with Mesh
    TensorFlow's `label_smoothing`).

    Args: float32 [..., K], int [...], float32 [...]; float; "tensor2tensor" or "uniform".
    """
    right = ops.take_along_axis(logits, ops.cast(labels, "int32")[..., None], axis=-1)[..., 0]
    terms = smoothing_terms(right, ops.mean(logits, axis=-1), logits.shape[-1], smoothing, normalization)
    return ops.sum(terms * weights)


def smoothing_terms(right: Tensor, mean: Tensor, count: int, smoothing: float, normalization: str) -> Tensor:
    """What label smoothing adds to each loss, by the logits of the right labels and the mean of those of all `count`."""
    entropy = 0.0
    if normalization == "tensor2tensor":
        mean = (mean * count - right) / (count - 1)  # of the wrong ones
        entropy = -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(smoothing / (count - 1))
    return smoothing * (right - mean) - entropy


def binary_cross_entropy_sum(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of the cross-entropies of binary predictions in nats, float32.

    Args: float32 logits of label 1, float32 labels 0 or 1, float32 weights; all of one shape.
    """
    # log(1 + exp(x)) - x y, in the form that does not overflow.
    loss = ops.maximum(logits, 0) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.sum(loss * weights)


def feature(features: Tensors, name: str) -> Tensor:
    """The feature of that name.

    Raises:
        DataError: the batch has none.
    """
    if name not in features:
        raise DataError(f"the batch has no '{name}'; it has {', '.join(sorted(features))}")
    return features[name]
