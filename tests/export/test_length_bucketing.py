"""Length buckets, and weights stored in the precision they are read in, give what the model gives."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from exports import bert

from bert_tf.export import ServedClassifier, ServedEmbedding
from bert_tf.export.length_bucketing import apply_in_buckets
from bert_tf.export.storage import cast_once
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks.heads import Classifier


def rows(lengths):
    """Features whose token ids say which row they are of, with rubbish behind each row's end."""
    longest = max(lengths, default=0)
    ids = np.arange(1, len(lengths) + 1)[:, None] * 1000 + np.arange(longest)
    mask = np.arange(longest) < np.array(lengths)[:, None] if lengths else np.zeros((0, 0), bool)
    return {"token_ids": tf.constant(ids, tf.int32), "padding_mask": tf.constant(mask)}


@pytest.mark.parametrize("count, per_token", [(0, True), (1, False), (8, True), (9, False), (33, True), (33, False)])
def test_each_row_gets_its_own_answer(count, per_token):
    features = rows(np.random.default_rng(count).integers(1, 200, count).tolist())
    widths = []

    def function(part):
        tf.py_function(lambda m: widths.append(m.shape), [part["padding_mask"]], [])
        kept = masked_ids(part)
        return {"sum": tf.reduce_sum(kept, 1)} | ({"kept": kept[..., None]} if per_token else {})

    inputs = {name: tf.TensorSpec([None, None], x.dtype) for name, x in features.items()}
    shapes = {"sum": []} | ({"kept": [None, 1]} if per_token else {})
    compute = tf.function(lambda features: apply_in_buckets(function, features, shapes), input_signature=[inputs])
    found, expected = compute(features), function(features)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    groups = widths[:-1]  # the last was asked for just now
    assert sum(n for n, _ in groups) == count and all(n <= 8 and length > 0 for n, length in groups)
    if count == 33:
        assert sum(n * length for n, length in groups) < 0.8 * count * features["padding_mask"].shape[1]


def test_short_texts_stay_in_one_group():
    sizes = []

    def function(part):
        tf.py_function(lambda m: sizes.append(m.shape[0]), [part["padding_mask"]], [])
        return {"first": tf.cast(part["token_ids"][:, :1], tf.float32)}

    features = rows([3, 16, 5] * 10)
    answer = tf.function(lambda features: apply_in_buckets(function, features, {"first": [1]}))(features)["first"]
    np.testing.assert_array_equal(answer[:, 0], features["token_ids"][:, 0])
    assert sizes == [30]


def masked_ids(part):
    return tf.cast(part["padding_mask"], tf.float32) * tf.cast(part["token_ids"], tf.float32)


def test_padding_may_stand_anywhere():
    features = {name: tf.reverse(x, [1]) for name, x in rows([3, 90, 40, 7] * 5).items()}
    features["padding_mask"] &= tf.range(90) != 88  # a hole
    found = apply_in_buckets(lambda part: {"sum": tf.reduce_sum(masked_ids(part), 1)}, features, {"sum": []})
    np.testing.assert_array_equal(found["sum"], tf.reduce_sum(masked_ids(features), 1))


@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-6), ("mixed_bfloat16", 0.02)])
def test_a_served_batch_of_several_groups_is_answered_as_text_by_text(precision, tolerance, tokenizer):
    keras.utils.set_random_seed(0)
    model = Classifier(bert(dtype=precision), 3)
    module = ServedClassifier(model, tokenizer, ("a", "b", "c"), 32)
    for variable in model.trainable_variables:  # after the module was made: what is written are the weights of now
        variable.assign(1.5 * variable)
    served = module.traced()["serving_default"]
    texts = ["the cat sat on the mat " * (i % 7) for i in range(40)]
    answers = served(text=tf.constant(texts))["probabilities"].numpy()
    alone = [model(module.features(tf.constant([text])))["probabilities"][0] for text in texts[:7]]
    np.testing.assert_allclose(answers, np.array(alone)[np.arange(40) % 7], atol=tolerance)
    assert np.ptp(answers, axis=0).max() > 5 * tolerance


@pytest.mark.parametrize("policy, halved", [("mixed_bfloat16", True), ("float32", False)])
def test_stored_weights_are_those_that_were_read(policy, halved, tokenizer):
    encoder = BertEncoder(BertConfig(tokenizer.vocabulary_size, 16, 2, 2, 32, max_positions=8), dtype=policy)
    module = ServedEmbedding(encoder, tokenizer, 8, static=True)  # computes the batch as a whole, as the model does
    features = module.trial_inputs("ids")
    mask = tf.cast(features["padding_mask"], encoder.compute_dtype)[..., None]
    expected = encoder(features)["sequence_output"] * mask
    answer = module.traced()["ids"]
    # A graph rounds otherwise than single operations do.
    actual = answer(**features)["sequence_output"]
    np.testing.assert_allclose(actual, tf.cast(expected, "float32"), atol=0.03 if halved else 1e-5)
    tables = (tokenizer.vocabulary_size, 8, 2)  # embeddings, of which single rows are read and cast
    matrices = [v for v in module.variables if len(v.shape) == 2 and v.shape[0] not in tables]
    assert matrices and all((v.dtype == tf.bfloat16) == halved for v in matrices)
    cast = {part.weight.path.rsplit("/")[-1] for part in cast_once(encoder)}
    assert cast == ({"kernel", "bias"} if halved else set())
    for variable in module.variables:  # nothing but these is read
        variable.assign(tf.zeros_like(variable))
    assert not np.any(answer(**features)["sequence_output"])
    if halved:  # the model has its own
        assert all(np.any(v.numpy()) for v in encoder.variables if "kernel" in v.path)
