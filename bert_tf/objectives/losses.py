"""What the objectives share: sums of losses, and reading a batch."""

from keras import ops

from bert_tf.backend import fused, largest
from bert_tf.errors import DataError


def cross_entropy_sums(logits, labels, weights):
    """(weighted sum of cross-entropies in nats, weighted number of right answers), float32.

    Args: float32 [..., K], int [...], float32 [...].
    """
    labels = ops.cast(labels, "int32")
    guesses = largest(logits)
    correct = ops.cast(ops.equal(guesses, labels), "float32")
    return ops.sum(_cross_entropy(logits, labels, guesses) * weights), ops.sum(correct * weights)


@ops.custom_gradient
def _cross_entropy(logits, labels, guesses):
    """-log softmax(logits)[labels]; float32 [...] from float32 [..., K], int32 [...] and `largest` of the logits.

    Softmax is TensorFlow's one fast way through a vocabulary's worth of logits on a CPU: the loss
    and its gradient are both taken from it, in half the time of the operation that is for that.
    """
    probabilities = ops.softmax(logits)
    # log sum exp(x) = max(x) - log(max softmax(x)), and the largest of K is at least 1 / K.
    normalizers = _at(logits, guesses) - ops.log(_at(probabilities, guesses))

    def gradient(*arguments, upstream=None):
        upstream = arguments[0] if upstream is None else upstream
        return _gradient_of_logits(probabilities, labels[..., None], upstream[..., None]), None, None

    return normalizers - _at(logits, labels), gradient


@fused
def _gradient_of_logits(probabilities, labels, upstream):
    """float32 [..., K] from [..., K], int32 [..., 1] and [..., 1]."""
    places = ops.arange(probabilities.shape[-1], dtype="int32")
    right = ops.cast(ops.equal(places, labels), probabilities.dtype)
    return (probabilities - right) * upstream


def _at(x, places):
    """[...]: the values of [..., K] at int32 [...]."""
    return ops.take_along_axis(x, places[..., None], axis=-1)[..., 0]


def binary_cross_entropy_sum(logits, labels, weights):
    """The weighted sum of the cross-entropies of yes-or-no questions in nats, float32.

    Args: float32 logits of "yes", float32 labels 0 or 1, float32 weights; all of one shape.
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
