"""The formulas of distillation: pure functions of tensors, float32, one value for each prediction, row or token.

What a term takes the mean over is in `output_losses.py` and `internal_losses.py`.
"""

from keras import ops

#: What PyTorch adds to squares, and the smallest norm.
EPSILON = 1e-12


def soft_cross_entropies(student, teacher, temperature=1.0, divergence=False):
    """-sum_c p_c log q_c with p, q = softmax(logits / T): float32 [..., C] twice -> [...].

    Hinton et al. 2015, section 2, without the factor T squared. With `divergence` sum_c p_c log(p_c / q_c).
    """
    p_log = ops.log_softmax(teacher / temperature)
    p, q_log = ops.exp(p_log), ops.log_softmax(student / temperature)
    return ops.sum(p * ((p_log if divergence else 0.0) - q_log), axis=-1)


def squared_errors(student, teacher):
    """sum_c (s_c - t_c)^2: float32 [..., C] twice -> [...]."""
    return ops.sum(ops.square(student - teacher), axis=-1)


def cosine_distances(student, teacher):
    """1 - cos(s, t): float32 [..., H] twice -> [...]. PyTorch's CosineEmbeddingLoss with the target 1."""
    product = ops.sum(student * teacher, axis=-1)
    squares = (ops.sum(ops.square(student), axis=-1) + EPSILON) * (ops.sum(ops.square(teacher), axis=-1) + EPSILON)
    return 1.0 - product / ops.sqrt(squares)


def normalize(x):
    """x / |x|, the norm over the last axis: PyTorch's `functional.normalize`."""
    return x / ops.sqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), EPSILON**2))


def relation_scores(x, heads, mask):
    """Scaled dot products of the vectors of one text with each other, float32 [B, heads, S, S].

    x x^T / sqrt(d), of which a softmax makes a relation: Wang et al. 2020, section 3.2; Wang et al. 2021, section 3.1.

    Args:
        x: float [B, S, n, d], of which n d is cut into `heads` parts again.
        heads: the number of parts.
        mask: float32 [B, S], 1 at tokens; others get a large negative score.
    """
    batch, length, count, size = ops.shape(x)
    x = ops.reshape(ops.cast(x, "float32"), (batch, length, heads, count * size // heads))
    scores = ops.einsum("bqhd,bkhd->bhqk", x, x) * (count * size // heads) ** -0.5
    return scores + (mask[:, None, None, :] - 1.0) * 1e9


def divergences_of_rows(student, teacher, mask):
    """The divergence of distributions over keys, the mean over heads: float32 [B, n, S, S] twice, [B, S] -> [B, S].

    sum_k p_k log(p_k / q_k) for each query; 0 where `mask` is 0. Wang et al. 2020, section 3.1.
    """
    return ops.mean(soft_cross_entropies(student, teacher, divergence=True), axis=1) * mask
