"""The cross-entropy of a large vocabulary without all logits at once."""

from keras import ops

from bert_tf.objectives.losses import smoothing_entropy


def block_loss_sums(x, table, labels, weights, block, z_loss=0.0, smoothing=0.0, normalization="tensor2tensor"):
    """The sums of a loss over tokens, with the logits of `block` tokens in memory at a time.

    The loss is linear in the losses of the tokens, so that its gradient is computed block by block together with it,
    and the backward pass only multiplies it by a number: no product is computed twice.

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
    *leading, size = ops.shape(x)
    vocabulary = table.shape[0]
    labels, weights = ops.reshape(ops.cast(labels, "int32"), (-1,)), ops.reshape(weights, (-1,))
    count = ops.shape(labels)[0]
    blocks = (count + block - 1) // block
    fill = blocks * block - count  # of weight 0
    labels, weights = ops.pad(labels, [(0, fill)]), ops.pad(weights, [(0, fill)])
    tokens = ops.arange(vocabulary, dtype="int32")

    @ops.custom_gradient
    def compute(x, table):
        rows = ops.pad(ops.reshape(x, (-1, size)), [(0, fill), (0, 0)])

        def step(i, loss, plain, correct, of_rows, of_table):
            first = i * block
            own_x = ops.slice(rows, [first, 0], [block, size])
            own_labels, own_weights = ops.slice(labels, [first], [block]), ops.slice(weights, [first], [block])
            logits = ops.cast(ops.matmul(own_x, ops.transpose(table)), "float32")
            losses, nll, gradient = _token_losses(
                logits, ops.equal(tokens, own_labels[:, None]), z_loss, smoothing, normalization
            )
            right = ops.cast(ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), own_labels), "float32")
            gradient = ops.cast(gradient * own_weights[:, None], x.dtype)
            # A short block would be a slice with an update, an operation that some back ends lack.
            columns = ops.arange(blocks * block, dtype="int32") - first
            here = ops.logical_and(columns >= 0, columns < block)[:, None]
            of_block = ops.take(ops.matmul(gradient, table), ops.clip(columns, 0, block - 1), axis=0)
            of_table = of_table + ops.cast(ops.matmul(ops.transpose(gradient), own_x), "float32")
            # The next block waits for this one: else several would be in memory.
            after = i + 1 + ops.minimum(ops.cast(ops.isnan(of_table[0, 0]), "int32"), 0)
            return (
                after,
                loss + ops.sum(losses * own_weights),
                plain + ops.sum(nll * own_weights),
                correct + ops.sum(right * own_weights),
                ops.where(here, of_block, of_rows),
                of_table,
            )

        zero = ops.zeros((), "float32")
        sums = (zero, zero, zero, ops.zeros_like(rows), ops.zeros((vocabulary, size), "float32"))
        _, loss, plain, correct, of_rows, of_table = ops.while_loop(lambda i, *_: i < blocks, step, (0, *sums))

        def gradient(upstream, *_):
            of_x = ops.reshape(of_rows[:count], (*leading, size))
            return of_x * ops.cast(upstream, x.dtype), ops.cast(of_table * upstream, table.dtype)

        return (loss, plain, correct), gradient

    return compute(x, ops.cast(table, x.dtype))


def _token_losses(logits, is_right, z_loss, smoothing, normalization):
    """(losses [N], cross-entropies [N], gradients of the losses by the logits [N, V]), all float32.

    Args: float32 [N, V]; bool [N, V], True at the labels; the others as `block_loss_sums`.
    """
    count, right = logits.shape[-1], ops.cast(is_right, "float32")
    largest = ops.max(logits, axis=-1, keepdims=True)
    exponentials = ops.exp(logits - largest)
    total = ops.sum(exponentials, axis=-1, keepdims=True)
    normalizers = (largest + ops.log(total))[:, 0]
    scores = ops.sum(logits * right, axis=-1)
    nll = normalizers - scores
    losses = nll + z_loss * ops.square(normalizers)
    gradients = exponentials * ((1 + 2 * z_loss * normalizers[:, None]) / total) - right
    if smoothing:
        if normalization == "tensor2tensor":
            others = (ops.sum(logits, axis=-1) - scores) / (count - 1)
            of_others = (1 - right) / (count - 1)
        else:
            others, of_others = ops.mean(logits, axis=-1), 1 / count
        losses = losses + smoothing * (scores - others) - smoothing_entropy(smoothing, count, normalization)
        gradients = gradients + smoothing * (right - of_others)
    return losses, nll, gradients
