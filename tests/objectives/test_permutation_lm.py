import keras
import numpy as np
import pytest
import tensorflow as tf
from numeric import assert_same_sums_in_a_graph, log_softmax

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder, XLNetConfig, XLNetEncoder
from bert_tf.objectives import PermutationLM

CONFIG = XLNetConfig(50, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=40, initializer_range=0.3)


def batch(rows=4, length=16, segments=2, predictions=3, backward=True):
    """Segments of 8 with 3 predictions each, ranks as `PermutationCorruption` gives them."""
    generator = np.random.default_rng(0)
    segment = length // segments
    order = np.zeros((rows, segments, segment), "int32")
    positions = np.zeros((rows, segments, predictions), "int32")
    for row in range(rows):
        for part in range(segments):
            chosen = generator.permutation(segment)[: predictions + 1]  # one that is not predicted
            order[row, part] = part * (segment + 1)
            order[row, part, chosen] += 1 + np.arange(predictions + 1)
            positions[row, part] = np.sort(chosen[1:]) + part * segment
    ids = generator.integers(5, 50, (rows, length)).astype("int32")
    positions = positions.reshape(rows, -1)
    segment_ids = np.tile(np.arange(length, dtype="int32") * 3 // length, (rows, 1))
    weights = (np.arange(positions.shape[1]) != 4).astype("float32") * np.ones((rows, 1), "float32")
    features = {"token_ids": ids, "segment_ids": segment_ids, "padding_mask": np.ones((rows, length), bool)}
    features |= {"mask_positions": positions, "mask_ids": np.take_along_axis(ids, positions, 1)}
    features |= {"mask_weights": weights, "permutation_order": order.reshape(rows, length)}
    if backward:
        features["backward"] = np.arange(rows) % 2 == 1
    return features


def make(segments=2, **arguments):
    keras.utils.set_random_seed(3)
    return PermutationLM(XLNetEncoder(CONFIG, pooler=False), segments=segments, **arguments)


def logits_of(model, features):
    return np.asarray(model(features)["permutation_lm_logits"])


def test_sums_against_float64():
    model, features = make(), batch()
    logits = logits_of(model, features)
    assert logits.shape == (4, 6, 50) and logits.dtype == "float32"
    picked = np.take_along_axis(log_softmax(logits), features["mask_ids"][..., None].astype(int), -1)[..., 0]
    losses, metrics = model.loss_sums(features, training=False)
    assert float(losses["permutation_lm"]) == pytest.approx(-(picked * features["mask_weights"]).sum(), rel=1e-5)
    assert float(model.loss_weights(features)["permutation_lm"]) == features["mask_weights"].sum() == 20
    right = (logits.argmax(-1) == features["mask_ids"]) * features["mask_weights"]
    assert [float(x) for x in metrics["permutation_lm_accuracy"]] == [right.sum(), 20]


def test_a_prediction_knows_the_tokens_of_lower_rank_and_no_others():
    objective, features = make(), batch(rows=2)
    model = tf.function(lambda features: objective(features))
    before = logits_of(model, features)
    for row in range(2):
        order, positions = features["permutation_order"][row], features["mask_positions"][row]
        for place in range(16):
            changed = {k: v.copy() for k, v in features.items()}
            changed["token_ids"][row, place] += 1 if changed["token_ids"][row, place] < 49 else -1
            difference = np.abs(logits_of(model, changed) - before)
            assert difference[1 - row].max() < 1e-5
            for number, position in enumerate(positions):
                earlier = place // 8 < position // 8
                if earlier or (place // 8 == position // 8 and order[place] < order[position]):
                    assert difference[row, number].max() > 1e-3, (place, position)
                else:
                    assert difference[row, number].max() == 0, (place, position)


def test_memory_is_what_the_segments_before_left():
    model, features = make(memory_length=5), batch()

    def encode(part, **more):
        inputs = {k: features[k][:, part] for k in ("token_ids", "segment_ids", "padding_mask")}
        order, backward = features["permutation_order"][:, part], features["backward"]
        return model.backbone.encode(inputs, permutation_order=order, backward=backward, **more)

    first = encode(slice(8))
    memory = tf.stack([h[:, 3:] for h in first["hidden_states"][:-1]], axis=1)
    second = encode(slice(8, None), memory=memory, mask_positions=features["mask_positions"][:, 3:] - 8)
    expected = model.lm_head(second["query_output"], model.backbone.embedding_table)
    np.testing.assert_allclose(logits_of(model, features)[:, 3:], expected, atol=1e-5)
    forgetful = make(memory_length=1)
    assert np.abs(logits_of(forgetful, features)[:, 3:] - expected).max() > 1e-3
    np.testing.assert_allclose(logits_of(forgetful, features)[:, :3], logits_of(model, features)[:, :3], atol=1e-5)


def test_only_reused_tokens_are_remembered():
    """Rows of the format xlnet read the second half of a segment again in the next, which must not remember it."""
    features = batch()
    features["permutation_order"][:, 4:8] += 20  # the first half sees nothing of the second
    changed = features | {"token_ids": features["token_ids"].copy()}
    changed["token_ids"][:, 4:8] = changed["token_ids"][:, 4:8] % 44 + 5
    for reuse_length, is_known in ((4, False), (None, True)):
        model = make(reuse_length=reuse_length)
        difference = np.abs(logits_of(model, changed) - logits_of(model, features))[:, 3:]
        assert (difference.max() > 1e-3) == is_known, difference.max()


def test_the_order_of_predictions_and_filler_change_nothing():
    model, features = make(segments=1), batch(segments=1)
    turned = {**features, "mask_positions": features["mask_positions"][:, ::-1]}
    np.testing.assert_allclose(logits_of(model, turned)[:, ::-1], logits_of(model, features), atol=1e-5)
    wider = {**features, "mask_positions": np.pad(features["mask_positions"], ((0, 0), (0, 2)))}
    np.testing.assert_allclose(logits_of(model, wider)[:, :3], logits_of(model, features), atol=1e-5)
    assert np.isfinite(logits_of(model, wider)).all()


def test_a_graph_with_unknown_shapes():
    assert_same_sums_in_a_graph(make(), batch(), 1e-4)


def test_errors():
    bert = BertEncoder(BertConfig(50, 24, 1, 3, 40, max_positions=16))
    with pytest.raises(ConfigError, match="needs XLNet's second attention stream.* of BertConfig has none"):
        PermutationLM(bert)
    with pytest.raises(ConfigError, match="segments=0 and memory_length=384 must be at least 1"):
        make(segments=0)
    with pytest.raises(DataError, match="'token_ids' has 16 columns, which is not a multiple of segments=3"):
        make(segments=3)(batch())
