"""Functions of all objectives: sums of losses, and reading a feature of a batch."""

from keras import ops

from bert_tf.backend import cross_entropy, largest
from bert_tf.errors import DataError


def cross_entropy_sums(logits, labels, weights):
    """(weighted sum of cross-entropies in nats, weighted number of correct predictions), float32.

    Args: float32 [..., K], int [...], float32 [...].
    """
    labels = ops.cast(labels, "int32")
    guesses = largest(logits)
    correct = ops.cast(ops.equal(guesses, labels), "float32")
    return ops.sum(cross_entropy(logits, labels, guesses) * weights), ops.sum(correct * weights)


def binary_cross_entropy_sum(logits, labels, weights):
    """The weighted sum of the cross-entropies of binary predictions in nats, float32.

    Args: float32 logits of label 1, float32 labels 0 or 1, float32 weights; all of one shape.
    """
    # log(1 + exp(x)) - x y, in the form that does not overflow.
    loss = ops.maximum(logits, 0) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.sum(loss * weights)


def feature(features, name):
    """The feature of that name.

    Raises:
        DataError: the batch has none.
    """
    if name not in features:
        raise DataError(f"the batch has no '{name}'; it has {', '.join(sorted(features))}")
    return features[name]
