"""Length bucketing of a request: texts of similar length are computed together, so that little is padding."""

import tensorflow as tf

#: The size of a bucket, in texts and in tokens. In smaller ones the processor waits for the weights.
TEXTS, TOKENS = 8, 512


def apply_in_buckets(function, features, shapes, of_texts=()):
    """Applies `function` to a batch bucket by bucket, each padded to its own longest text.

    Args:
        function: from features of the data contract [n, s] to a dict of float32 tensors [n, *shape]; it treats each text
            alone.
        features: `token_ids`, `segment_ids`, `padding_mask` [N, S]. Padding may be anywhere; columns after
            the last token of a bucket are removed, also of further features [N, S, ...].
        shapes: by the name of a result its static shape for one text; begins with None if there is a value for each
            token.
        of_texts: the names of features [N, ...] that have no column for each token.

    Returns:
        `function(features)` up to rounding, with zeros at padding beyond a bucket's length.
    """
    count, width = tf.unstack(tf.shape(features["padding_mask"]))
    features = {name: x if name in of_texts else _not_empty(x) for name, x in features.items()}
    longest = tf.maximum(width, 1)
    lengths = tf.reduce_max(tf.cast(features["padding_mask"], tf.int32) * tf.range(1, longest + 1), axis=1)
    most = tf.maximum(TEXTS, TOKENS // longest)
    buckets = tf.maximum(1, -(-count // most))
    size = -(-count // buckets)  # all nearly equal
    order = tf.argsort(lengths, stable=True)

    def one(bucket, arrays):
        texts = order[bucket * size : (bucket + 1) * size]
        length = tf.clip_by_value(tf.reduce_max(tf.gather(lengths, texts)), 1, longest)
        chosen = {name: tf.gather(x, texts) for name, x in features.items()}
        results = function({name: x if name in of_texts else x[:, :length] for name, x in chosen.items()})
        for name in of_tokens:
            fillers = [[0, 0], [0, longest - length]] + [[0, 0]] * (len(shapes[name]) - 1)
            results[name] = tf.pad(results[name], fillers)
        return bucket + 1, {name: array.write(bucket, results[name]) for name, array in arrays.items()}

    of_tokens = [name for name, shape in shapes.items() if shape[:1] == [None]]
    arrays = {
        name: tf.TensorArray(tf.float32, buckets, infer_shape=False, element_shape=[None, *shape])
        for name, shape in shapes.items()
    }
    # Two buckets side by side use two cores better than two threads within each operation.
    _, arrays = tf.while_loop(lambda bucket, _: bucket < buckets, one, (0, arrays), parallel_iterations=2)
    places = tf.argsort(order)
    results = {name: tf.gather(array.concat(), places) for name, array in arrays.items()}
    return {name: x[:, :width] if name in of_tokens else x for name, x in results.items()}


def _not_empty(x):
    """[N, 1, ...] of zeros for [N, 0, ...], which recurrent layers cannot read; else `x`."""
    columns = tf.maximum(1 - tf.shape(x)[1], 0)
    return tf.pad(x, [[0, 0], [0, columns]] + [[0, 0]] * (len(x.shape) - 2))
