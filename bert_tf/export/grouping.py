"""Texts of like length together, so that a batch costs little more than its tokens."""

import tensorflow as tf

ROWS, TOKENS = 8, 512  # of a group: fewer leave the processor waiting for the weights


def by_length(function, features, row):
    """`function` of a batch, computed in groups of rows of like length, each as long as its longest.

    Args:
        function: from features of the data contract [n, s] to a float32 tensor [n, *row], of each
            row alone.
        features: `token_ids`, `segment_ids`, `padding_mask` [N, S]; wherever padding stands, columns
            behind the last token of a group are left out.
        row: the static shape of a row of the result; begins with None if it is of each token.

    Returns:
        What `function(features)` is but for rounding, and but for zeros where a token is padding
        beyond its group.
    """
    count, longest = tf.unstack(tf.shape(features["padding_mask"]))
    lengths = tf.reduce_max(tf.cast(features["padding_mask"], tf.int32) * tf.range(1, longest + 1), axis=1)
    most = tf.maximum(ROWS, TOKENS // tf.maximum(longest, 1))
    groups = tf.maximum(1, -(-count // most))
    size = -(-count // groups)  # all nearly alike
    order = tf.argsort(lengths, stable=True)

    def one(group, results):
        rows = order[group * size : (group + 1) * size]
        length = tf.clip_by_value(tf.reduce_max(tf.gather(lengths, rows)), tf.minimum(1, longest), longest)
        result = function({name: tf.gather(x, rows)[:, :length] for name, x in features.items()})
        if row[:1] == [None]:
            result = tf.pad(result, [[0, 0], [0, longest - length]] + [[0, 0]] * (len(row) - 1))
        return group + 1, results.write(group, result)

    results = tf.TensorArray(tf.float32, groups, infer_shape=False, element_shape=[None, *row])
    # Two groups side by side fill two cores better than the halves of each operation do.
    steps = tf.while_loop(lambda group, _: group < groups, one, (0, results), parallel_iterations=2)
    return tf.gather(steps[1].concat(), tf.argsort(order))
