"""The large layers of a served model in shares, which threads of their own compute side by side.

A short text is too little work for the threads of one operation to share: they wait for one another as
long as they work. Here each thread has its own heads, and its own columns of the other matrices, and
meets the others four times a layer: column-parallel as in Megatron-LM (Shoeybi et al. 2019, section 3). All
layers are cut by columns, also those that Megatron cuts by rows: no sum is taken apart, so the numbers
are the model's.
"""

import tensorflow as tf
from keras import ops

from bert_tf.backend import Dense, attention_weights
from bert_tf.backend.cpu_kernels import product
from bert_tf.layers.attention import Attention

LARGE = 2**16  # numbers in a matrix; the product with a smaller one is over before another thread is awake


def in_shares(layers, count):
    """What computes large layers in `count` shares, from variables of its own.

    Args:
        layers: of a built model, what they consist of included.
        count: int, shares. A layer whose heads or columns they do not divide stays whole.

    Returns:
        dict from layer to what answers in place of its `call`. That has `variables`, a list of tf.Variable
        in the layer's compute dtype, and `replaced`, the Keras variables that they stand for.
    """
    shared = {}
    if count > 1:
        shared = {x: AttentionInShares(x, count) for x in layers if isinstance(x, Attention) and _divides(count, x)}
        within = {id(projection) for x in shared for projection in (x.query, x.key, x.value)}
        dense = [x for x in layers if isinstance(x, Dense) and id(x) not in within]
        shared |= {x: DenseInShares(x, count) for x in dense if _divides_columns(count, x)}
    return shared


def _divides(count, attention):
    if attention.fused or not (attention.use_bias and attention.scale):
        return False
    return attention.num_heads % count == 0 and _divides_columns(count, attention.query)


def _divides_columns(count, dense):
    if dense.quantization_mode is not None:
        return False
    rows, columns = dense.kernel.shape
    return columns % count == 0 and rows * columns >= LARGE


def _parts(arrays, count, dtype):
    """The columns of each in `count` parts -> a variable for every share, with its part of one beside that of the next."""
    parts = [tf.split(tf.cast(tf.convert_to_tensor(x), dtype), count, -1) for x in arrays]
    return [tf.Variable(tf.concat(share, -1), trainable=False) for share in zip(*parts)]


class DenseInShares:
    """A dense layer, a share of its columns at a time; its activation is of each number alone."""

    def __init__(self, layer, count):
        biases = _parts([layer.bias], count, layer.compute_dtype) if layer.use_bias else [None] * count
        self._parts = list(zip(_parts([layer.kernel], count, layer.compute_dtype), biases))
        self._activation = layer.activation
        self.replaced = layer.variables
        self.variables = [v for part in self._parts for v in part if v is not None]

    def __call__(self, inputs, training=None):
        return tf.concat([product(inputs, *part, self._activation) for part in self._parts], -1)


class AttentionInShares:
    """An `Attention`, a share of its heads at a time; the output projection is a layer of its own.

    Queries, keys and values of a share come from one product and one transposition: with a short text
    to begin an operation costs about as much as its work.
    """

    def __init__(self, layer, count):
        self._layer, self._heads = layer, layer.num_heads // count
        projections = (layer.query, layer.key, layer.value)
        kernels, biases = [x.kernel for x in projections], [x.bias for x in projections]
        self._parts = list(zip(_parts(kernels, count, layer.compute_dtype), _parts(biases, count, layer.compute_dtype)))
        self.replaced = [v for x in projections for v in x.variables]
        self.variables = [v for part in self._parts for v in part]

    def __call__(self, x, attention_mask, source=None, return_attention_scores=False, training=False):
        x, queries = (x, None) if source is None else (source, x)
        of_heads = len(attention_mask.shape) > 2 and attention_mask.shape[-3] != 1
        masks = tf.split(attention_mask, len(self._parts), -3) if of_heads else [attention_mask] * len(self._parts)
        contexts, probabilities = [], []
        for part, mask in zip(self._parts, masks):
            query, key, value = self._project(x, part)
            if queries is not None:  # few: their keys and values cost less than another matrix
                query = self._project(queries, part)[0]
            scores = tf.matmul(query * query.shape[-1] ** -0.5, key, transpose_b=True)
            weights, of_share = attention_weights(scores, mask, self._layer.dropout, training)
            contexts.append(tf.transpose(tf.matmul(weights, value), (0, 2, 1, 3)))
            probabilities.append(of_share)
        batch, length, size = ops.shape(x if queries is None else queries)
        output = self._layer.output_projection(tf.reshape(tf.concat(contexts, 2), (batch, length, size)))
        return (output, tf.concat(probabilities, 1)) if return_attention_scores else output

    def _project(self, x, part):
        """[B, S, H] -> queries, keys and values of a share's heads, each [B, n, S, d]."""
        batch, length, size = ops.shape(x)
        together = tf.reshape(product(x, *part, None), (batch, length, 3, self._heads, size // self._layer.num_heads))
        return tf.unstack(tf.transpose(together, (2, 0, 3, 1, 4)))
