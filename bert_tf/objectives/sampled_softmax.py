"""The cross-entropy of a large vocabulary against a few drawn tokens (Jean et al. 2015, arXiv:1412.2007)."""

import math

from keras import ops

from bert_tf.backend import lookup


def log_uniform_candidates(uniform, vocabulary_size):
    """Token ids drawn with replacement, id k with the probability log((k + 2) / (k + 1)) / log(V + 1).

    That is nearly Zipf's law for a vocabulary that is sorted by frequency: TensorFlow's `log_uniform_candidate_sampler`.

    Args:
        uniform: float32 [C], from 0 to 1.
        vocabulary_size: V.

    Returns:
        int32 [C].
    """
    ids = ops.floor(ops.exp(ops.cast(uniform, "float32") * math.log(vocabulary_size + 1))) - 1
    return ops.cast(ops.clip(ids, 0, vocabulary_size - 1), "int32")


def sampled_softmax_sum(x, table, bias, labels, weights, candidates):
    """The weighted sum over tokens of the cross-entropy of the right token against the candidates, in nats.

    From each logit the logarithm of how often its token is expected among C candidates is subtracted, so that the
    gradient is that of the full softmax but for the sampling; candidates that are the right token do not count. These are
    the formulas of `tf.nn.sampled_softmax_loss`, with candidates drawn with replacement, where bilm-tf and
    adversarial_text draw without.

    Args:
        x: float [..., H].
        table: a variable [V, H].
        bias: a variable [V]; None for none.
        labels: int [...].
        weights: float32 [...].
        candidates: int32 [C], of `log_uniform_candidates`.

    Returns:
        float32, a scalar.

    Example:
        candidates = log_uniform_candidates(np.random.rand(100).astype("float32"), 10_000)
        sampled_softmax_sum(x, table, None, labels, np.ones(labels.shape, "float32"), candidates)
    """
    size, count = table.shape[0], candidates.shape[0]
    x, labels = ops.reshape(x, (-1, x.shape[-1])), ops.reshape(ops.cast(labels, "int32"), (-1,))
    weights = ops.reshape(weights, (-1,))

    def of_tokens(ids):
        vectors = ops.cast(lookup(table, ids), x.dtype)
        chances = (ops.log1p(1 / (ops.cast(ids, "float32") + 1))) / math.log(size + 1)
        offsets = -ops.log(chances * count)
        return vectors, offsets if bias is None else offsets + ops.cast(ops.take(bias, ids, axis=0), "float32")

    right_vectors, right_offsets = of_tokens(labels)
    right = ops.cast(ops.sum(x * right_vectors, axis=-1), "float32") + right_offsets
    vectors, offsets = of_tokens(candidates)
    others = ops.cast(ops.matmul(x, ops.transpose(vectors)), "float32") + offsets
    others = ops.where(ops.equal(candidates[None], labels[:, None]), -1e9, others)  # [N, C]
    every = ops.concatenate([right[:, None], others], axis=-1)
    return ops.sum((ops.logsumexp(every, axis=-1) - right) * weights)
