"""Checks of requests, as assertions in the graph of a served model.

A server returns the message to the client as INVALID_ARGUMENT. XLA drops assertions: a server that compiles a whole
signature (TPUs, `jit_compile`) answers wrong requests without a check.
"""

import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.parsing import brief


def check_ids(features, vocabulary_size, num_segments):
    """The features of the `ids` signature, `token_ids`, `segment_ids`, `padding_mask` [N, S], after assertions.

    Args:
        features: dict of tensors.
        vocabulary_size: of the tokenizer.
        num_segments: the size of the model's segment table; with 0 or 1 `segment_ids` are not read.

    Raises:
        tf.errors.InvalidArgumentError: while the graph runs: shapes that differ, no column, or ids outside the
            model's tables.
    """
    features = check_shapes(features)
    shape = tf.shape(features["token_ids"])
    message = ["token_ids must have at least one token a row, their shape is", shape]
    features = _after([_refuse((shape[1] > 0) | (shape[0] == 0), message)], features)
    counts = {"token_ids": vocabulary_size} | ({"segment_ids": num_segments} if num_segments > 1 else {})
    return features | {name: check_between(name, features[name], 0, count - 1) for name, count in counts.items()}


def check_shapes(features):
    """The features of an `ids` signature, after an assertion that all have the shape of `segment_ids`.

    `token_ids` may have one dimension more, the characters of a word.
    """
    shapes = {name: tf.shape(value) for name, value in features.items()}
    tokens = shapes["token_ids"][: features["segment_ids"].shape.rank]
    alike = [
        _refuse(
            tf.reduce_all(tokens == shapes[name]),
            ["token_ids and", name, "must have the same shape, they have", tokens, "and", shapes[name]],
        )
        for name in ("segment_ids", "padding_mask")
    ]
    return _after(alike, features)


def check_as_many(**inputs):
    """The inputs [N, ...] of a signature, after an assertion; a single one would be broadcast otherwise."""
    (first, size), *others = ((name, tf.shape(value)[0]) for name, value in inputs.items())
    alike = [
        _refuse(size == count, [f"there must be as many {name} as {first}, there are", count, "and", size])
        for name, count in others
    ]
    return _after(alike, inputs).values()


def check_count(name, value, most, what):
    """Refuses a setting of an export that is no whole number from 1 to `most`, the number of `what`.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ConfigError(f"{name}={brief(value)} must be a whole number between 1 and {most}, {what}")


def check_between(name, values, low, high, above=False):
    """Numbers of any shape from `low` (only above it, if `above`) to `high`, after an assertion."""
    fits = (values > low if above else values >= low) & (values <= high)
    limits = f"{'above' if above else 'at least'} {low} and at most {high}"
    problem = [f"{name} must be {limits}; the request has", tf.boolean_mask(values, ~fits)[:1]]
    checked = _refuse(tf.reduce_all(fits), problem)
    return _after([checked], {name: values})[name]


def check_at_most(name, values, other, most):
    """Numbers [N] that are at most the other number `most` [N] of the same text, after an assertion."""
    wrong = values > most
    pairs = tf.stack([values, most], axis=1)
    message = [f"{name} must be at most {other}; the request has {name} and {other}", tf.boolean_mask(pairs, wrong)[:1]]
    return _after([_refuse(~tf.reduce_any(wrong), message)], {name: values})[name]


def refuse_texts(wrong, texts, message, tensor):
    """`tensor`, after an assertion that none of the texts [N] is `wrong`; the first that is stands in the message."""
    right = _refuse(~tf.reduce_any(wrong), ["the text", tf.boolean_mask(texts, wrong)[:1], message])
    return _after([right], {"": tensor})[""]


def _refuse(condition, message):
    return tf.debugging.Assert(condition, message, summarize=4)


def _after(assertions, tensors):
    with tf.control_dependencies([x for x in assertions if x is not None]):
        return {name: tf.identity(tensor) for name, tensor in tensors.items()}
