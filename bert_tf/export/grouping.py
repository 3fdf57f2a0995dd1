"""Texts of like length together, so that a batch costs little more than its tokens."""

import tensorflow as tf

ROWS, TOKENS = 8, 512  # of a group: fewer leave the processor waiting for the weights


def by_length(function, features, per_token=False):
    """`function` of a batch, computed in groups of rows of like length, each as long as its longest.

    Args:
        function: from features of the data contract [n, s] to a tensor [n, ...], of each row alone.
        features: `token_ids`, `segment_ids`, `padding_mask` [N, S], padded behind.
        per_token: whether the function's result is [n, s, ...].

    Returns:
        What `function(features)` is but for rounding, and but for zeros where a token is padding
        beyond its group.
    """
    lengths = tf.reduce_sum(tf.cast(features["padding_mask"], tf.int32), axis=1)
    count, longest = tf.unstack(tf.shape(features["padding_mask"]))
    most = tf.maximum(ROWS, TOKENS // tf.maximum(longest, 1))
    groups = tf.maximum(1, -(-count // most))
    size = -(-count // groups)  # all nearly alike
    order = tf.argsort(lengths, stable=True)

    def one(group, results):
        rows = order[group * size : (group + 1) * size]
        length = tf.clip_by_value(tf.reduce_max(tf.gather(lengths, rows)), tf.minimum(1, longest), longest)
        result = function({name: tf.gather(x, rows)[:, :length] for name, x in features.items()})
        if per_token:
            result = tf.pad(result, [[0, 0], [0, longest - length]] + [[0, 0]] * (result.shape.rank - 2))
        return group + 1, results.write(group, result)

    shape, dtype = _row(function, features)
    results = tf.TensorArray(dtype, groups, infer_shape=False, element_shape=[None, *shape])
    results = tf.while_loop(lambda group, _: group < groups, one, (0, results), parallel_iterations=1)[1].concat()
    return tf.gather(results, tf.argsort(order))


def _row(function, features):
    """The static shape of a row of the function's result, and its dtype."""
    graph = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, None], x.dtype) for name, x in features.items()}
    )
    return graph.outputs[0].shape[1:], graph.outputs[0].dtype
