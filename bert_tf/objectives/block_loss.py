"""The cross-entropy of a large vocabulary without all logits at once."""

from keras import ops

from bert_tf.backend import largest, product_with_transposed
from bert_tf.objectives.losses import smoothing_terms
from bert_tf.types import Tensor


def block_loss_sums(
    x: Tensor,
    table: Tensor,
    labels: Tensor,
    weights: Tensor,
    block: int,
    z_loss: float = 0.0,
    smoothing: float = 0.0,
    normalization: str = "tensor2tensor",
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums of a loss over tokens, with the logits of `block` tokens in memory at a time.

    Args:
        x: float [..., H]; the logits are x @ table^T.
        table: float [V, H].
        labels: int [...].
        weights: float32 [...].
        block: tokens, an int.
        z_loss: the weight of log(Z)^2.
        smoothing, normalization: of `smoothing_sum`.

    Returns:
        (weighted loss, weighted cross-entropy alone, weighted number of correct predictions), float32; only the first
        has a gradient.
    """
    x, table = ops.reshape(x, (-1, x.shape[-1])), ops.cast(table, x.dtype)
    labels, weights = ops.reshape(ops.cast(labels, "int32"), (-1,)), ops.reshape(weights, (-1,))
    total, plain, correct = _normalizer_sums(x, table, labels, weights, block, z_loss)
    scores = ops.cast(ops.sum(x * ops.take(table, labels, axis=0), axis=-1), "float32")
    right = ops.sum(scores * weights)
    loss = total - right
    if smoothing:
        mean = ops.cast(ops.matmul(x, ops.mean(table, axis=0)), "float32")
        loss = loss + ops.sum(smoothing_terms(scores, mean, table.shape[0], smoothing, normalization) * weights)
    return loss, plain - right, correct


def _normalizer_sums(x, table, labels, weights, block, z_loss):
    """Sums over tokens of log(Z) + z_loss * log(Z)^2, of log(Z), and of correct predictions, float32.

    The first is linear in what each token adds, so that its gradient is computed together with it, block by block, and
    the backward pass only multiplies it by a number: no product is computed twice.

    Args: float [N, H], float [V, H], int32 [N], float32 [N], int, float.
    """
    size, count = x.shape[-1], ops.shape(x)[0]
    blocks = (count + block - 1) // block
    fill = blocks * block - count  # of weight 0
    labels, weights = ops.pad(labels, [(0, fill)]), ops.pad(weights, [(0, fill)])

    @ops.custom_gradient
    def compute(x, table):
        rows = ops.pad(x, [(0, fill), (0, 0)])

        def step(i, total, plain, correct, of_rows, of_table):
            first = i * block
            block_rows = ops.slice(rows, [first, 0], [block, size])
            block_labels, block_weights = ops.slice(labels, [first], [block]), ops.slice(weights, [first], [block])
            logits = ops.cast(product_with_transposed(block_rows, table), "float32")
            guesses, probabilities = largest(logits), ops.softmax(logits)
            # log sum exp(x) = max(x) - log(max softmax(x)).
            top, sure = (ops.take_along_axis(a, guesses[:, None], axis=-1)[:, 0] for a in (logits, probabilities))
            normalizers = top - ops.log(sure)
            factors = (block_weights * (1 + 2 * z_loss * normalizers))[:, None]
            probabilities = ops.cast(probabilities, x.dtype)
            of_block = ops.cast(ops.matmul(probabilities, table), "float32") * factors
            products = ops.matmul(ops.transpose(probabilities), block_rows * ops.cast(factors, x.dtype))
            of_table = of_table + ops.cast(products, "float32")
            # Not a slice with an update, which is an operation of XLA in a TensorFlow graph.
            columns = ops.arange(blocks * block, dtype="int32") - first
            in_block = ops.logical_and(columns >= 0, columns < block)[:, None]
            of_block = ops.take(of_block, ops.clip(columns, 0, block - 1), axis=0)
            # The next block waits for this one: else several would be in memory.
            after = i + 1 + ops.minimum(ops.cast(ops.isnan(of_table[0, 0]), "int32"), 0)
            return (
                after,
                total + ops.sum(block_weights * (normalizers + z_loss * ops.square(normalizers))),
                plain + ops.sum(block_weights * normalizers),
                correct + ops.sum(block_weights * ops.cast(ops.equal(guesses, block_labels), "float32")),
                ops.where(in_block, of_block, of_rows),
                of_table,
            )

        zero = ops.zeros((), "float32")
        sums = (zero, zero, zero, ops.zeros_like(rows, dtype="float32"), ops.zeros(table.shape, "float32"))
        _, total, plain, correct, of_rows, of_table = ops.while_loop(lambda i, *_: i < blocks, step, (0, *sums))

        def gradient(upstream, *_):
            return ops.cast(of_rows[:count] * upstream, x.dtype), ops.cast(of_table * upstream, table.dtype)

        return (total, plain, correct), gradient

    return compute(x, table)
