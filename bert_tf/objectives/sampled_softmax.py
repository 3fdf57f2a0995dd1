"""The cross-entropy of a large vocabulary against a few drawn tokens (Jean et al. 2015, arXiv:1412.2007)."""

import math

from keras import ops

from bert_tf.types import Tensor


def log_uniform_candidates(uniform: Tensor, vocabulary_size: int) -> Tensor:
    """Token ids drawn with replacement, id k with the probability log((k + 2) / (k + 1)) / log(V + 1).

    That is nearly Zipf's law for a vocabulary that is sorted by frequency: TensorFlow's
    `log_uniform_candidate_sampler`.

    Args:
        uniform: float32 [C], from 0 to 1.
        vocabulary_size: V.

    Returns:
        int32 [C].
    """
    ids = ops.floor(ops.exp(ops.cast(uniform, "float32") * math.log(vocabulary_size + 1))) - 1
    return ops.cast(ops.clip(ids, 0, vocabulary_size - 1), "int32")


def sampled_softmax_sum(
    x: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: Tensor, candidates: Tensor
) -> Tensor:
    """The weighted sum over tokens of the cross-entropy of the right token against the candidates, in nats.

    From each logit the logarithm of the probability that its token is among the candidates is subtracted. Candidates
    that are the right token, and repeated ones, do not count. These are the formulas of `tf.nn.sampled_softmax_loss`
    with distinct candidates, as bilm-tf and adversarial_text have them; but TensorFlow draws until it has C distinct
    tokens, and here the repeated ones of C draws are left out, so that there are fewer: of 8192 draws among ELMo's
    793,471 words about 4,600 are distinct.

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
        vectors = ops.cast(ops.take(table, ids, axis=0), x.dtype)
        chances = (ops.log1p(1 / (ops.cast(ids, "float32") + 1))) / math.log(size + 1)
        offsets = -ops.log(-ops.expm1(count * ops.log1p(-chances)))
        return vectors, offsets if bias is None else offsets + ops.cast(ops.take(bias, ids, axis=0), "float32")

    right_vectors, right_offsets = of_tokens(labels)
    right = ops.cast(ops.sum(x * right_vectors, axis=-1), "float32") + right_offsets
    candidates = ops.sort(candidates)
    repeated = ops.concatenate([ops.zeros_like(candidates[:1]), ops.cast(candidates[1:] == candidates[:-1], "int32")])
    vectors, offsets = of_tokens(candidates)
    drawn = ops.cast(ops.matmul(x, ops.transpose(vectors)), "float32") + offsets
    left_out = ops.logical_or(ops.equal(candidates[None], labels[:, None]), repeated[None] > 0)
    drawn = ops.where(left_out, -1e9, drawn)  # [N, C]
    every = ops.concatenate([right[:, None], drawn], axis=-1)
    return ops.sum((ops.logsumexp(every, axis=-1) - right) * weights)
