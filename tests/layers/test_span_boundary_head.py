import keras
import numpy as np
import pytest
from built import weights_of
from scipy import special

from bert_tf.layers import SpanBoundaryHead


def make(hidden_size=6, vocabulary_size=11, embedding_size=5, epsilon=1e-3, **arguments):
    arguments = {"activation": "gelu_erf", "initializer_range": 0.5, "num_positions": 4, "position_size": 3} | arguments
    head = SpanBoundaryHead(vocabulary_size, embedding_size, layer_norm_epsilon=epsilon, **arguments)
    head.build((None, None, hidden_size))
    numbers = np.random.default_rng(0)
    for variable in head.weights:  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        if len(variable.shape) == 1:
            variable.assign(variable + numbers.normal(0, 0.3, variable.shape))
    return head


def inputs(seed=1):
    numbers = np.random.default_rng(seed)
    left, right = numbers.standard_normal((2, 2, 5, 6)).astype("float32")
    table = numbers.standard_normal((11, 5)).astype("float32")
    # Spans of three and of one token and filler in the first row; one longer than the head reaches in the second.
    place = np.array([[0, 1, 2, 0, -1], [0, 1, 2, 3, 4]], "int32")
    return left, right, place, table


def in_float64(head, left, right, place, table):
    """`BertPairTargetPredictionHead`, one prediction after the other."""
    w = weights_of(head)

    def layer(number, x):
        x = x @ w[f"dense_{number}/kernel"] + w[f"dense_{number}/bias"]
        x = x * 0.5 * (1 + special.erf(x / np.sqrt(2)))
        x = (x - x.mean()) / np.sqrt(x.var() + head.layer_norm_epsilon)
        return x * w[f"layer_norm_{number}/gamma"] + w[f"layer_norm_{number}/beta"]

    logits = np.zeros((*place.shape, len(table)))
    for at in np.ndindex(*place.shape):
        row = w["position_embeddings"][min(max(place[at], 0), head.num_positions - 1)]
        hidden = layer(2, layer(1, np.concatenate([left[at], right[at], row]).astype("float64")))
        logits[at] = table.astype("float64") @ hidden + w["decoder/output_bias"]
    return logits


def test_against_float64():
    head = make()
    logits = np.asarray(head(*inputs()))
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, in_float64(head, *inputs()), rtol=1e-5, atol=1e-5)


def test_how_far_it_reaches():
    # The fifth token of a span has no row among four.
    expected = [[True] * 5, [True] * 4 + [False]]
    np.testing.assert_array_equal(make().reaches(inputs()[2]), expected)


@pytest.mark.parametrize("hidden_size, parameters", [(768, 1_959_676), (1024, 3_388_668)])
def test_published_counts(hidden_size, parameters):
    with keras.StatelessScope(initialize_variables=False):
        head = SpanBoundaryHead(28_996, hidden_size, "gelu_erf", 1e-12, 0.02)
        head.build((None, None, hidden_size))
        assert head.count_params() == parameters
    keras.utils.clear_session()  # or Keras would fill these variables in the next stateless scope


def test_mixed_bfloat16_and_configuration():
    head, example = make(), inputs()
    mixed = make(dtype="mixed_bfloat16")
    mixed.set_weights(head.get_weights())
    error = np.asarray(mixed(*example)) - np.asarray(head(*example))
    assert mixed(*example).dtype == "float32" and 1e-5 < np.sqrt((error**2).mean()) < 0.1
    copy = SpanBoundaryHead.from_config(head.get_config())
    copy.build((None, None, 6))
    copy.set_weights(head.get_weights())
    np.testing.assert_array_equal(copy(*example), head(*example))
