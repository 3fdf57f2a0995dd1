import dataclasses

import keras
import numpy as np
import pytest
from numeric import assert_same_sums_in_a_graph, gradients, largest, softmax

from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError
from bert_tf.models import ElectraConfig, ElectraEncoder, build_backbone, build_config
from bert_tf.models.electra.config import generator_config
from bert_tf.models.electra.model import make_generator
from bert_tf.objectives import ReplacedTokenDetection

SIZES = dict(vocabulary_size=50, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=40, max_positions=16)
CONFIG = ElectraConfig(**SIZES, embedding_size=12, initializer_range=0.3)
QUIET = dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0)
MASK = 3


def batch(rows=6, length=12, predictions=3, seed=0):
    generator = np.random.default_rng(seed)
    real = np.arange(length) < generator.integers(length // 2, length + 1, (rows, 1))
    original = np.where(real, generator.integers(5, 50, (rows, length)), 0)
    positions = 1 + np.stack([np.sort(generator.permutation(length // 2 - 1)[:predictions]) for _ in range(rows)])
    weights = np.arange(predictions) < generator.integers(1, predictions + 1, (rows, 1))
    positions = np.where(weights, positions, 0)
    token_ids = original.copy()
    for row in range(rows):
        token_ids[row, positions[row][weights[row]]] = MASK
    hidden = np.where(weights, np.take_along_axis(original, positions, 1), 0).astype("int32")
    masks = {"mask_positions": positions.astype("int32"), "mask_ids": hidden, "mask_weights": weights.astype("float32")}
    bits = generator.integers(0, 2**24, (rows, predictions), "int32")
    return {"token_ids": token_ids.astype("int32"), "padding_mask": real, "sampling_bits": bits} | masks


def make(config=QUIET, dtype="float32", size=0.5):
    keras.utils.set_random_seed(3)
    discriminator = ElectraEncoder(config, pooler=False, dtype=dtype)
    return ReplacedTokenDetection(discriminator, make_generator(discriminator, generator_config(config, size)))


def original_tokens(features):
    tokens = features["token_ids"].copy()
    for row, places, ids, weights in zip(tokens, *(features[f"mask_{k}"] for k in ("positions", "ids", "weights"))):
        row[places[weights > 0]] = ids[weights > 0]
    return tokens


def float64_losses(outputs, features):
    """Both loss sums, the combined loss and all metrics in float64, from logits and samples."""
    ids, weights, places = (features[k] for k in ("mask_ids", "mask_weights", "mask_positions"))
    logits, sampled = np.asarray(outputs["masked_lm_logits"], "float64"), np.asarray(outputs["sampled_ids"])
    probabilities = np.take_along_axis(softmax(logits), ids[..., None], -1)[..., 0]
    masked_lm = -(np.log(probabilities) * weights).sum()
    original = original_tokens(features)
    read = original.copy()
    for row in range(len(read)):
        for place, token, weight in zip(places[row], sampled[row], weights[row]):
            if weight:
                read[row, place] = token
    replaced, real = read != original, features["padding_mask"]
    x = np.asarray(outputs["replaced_logits"], "float64")
    answer = 1 / (1 + np.exp(-x))
    terms = -np.where(replaced, np.log(answer), np.log(1 - answer))
    discriminator = terms[real].sum()
    says = x > 0
    pairs = [(r, o) for row, at, here in zip(x, replaced, real) for r in row[at & here] for o in row[~at & here]]
    metrics = {
        "masked_lm_accuracy": ((logits.argmax(-1) == ids) * weights).sum() / weights.sum(),
        "sampled_accuracy": ((sampled == ids) * weights).sum() / weights.sum(),
        "discriminator_accuracy": (says == replaced)[real].mean(),
        "discriminator_precision": replaced[real & says].mean(),
        "discriminator_recall": says[real & replaced].mean(),
        "discriminator_auc": np.mean([(r > o) + (r == o) / 2 for r, o in pairs]),
        "replaced_share": replaced[real].mean(),
    }
    total = masked_lm / weights.sum() + 50 * discriminator / real.sum()
    return {"masked_lm": masked_lm, "discriminator": discriminator}, total, read, metrics


def test_losses_and_metrics_against_float64():
    model, features = make(), batch(rows=40)
    features["mask_ids"][0, 0] = int(model(features)["sampled_ids"][0, 0])  # one is drawn right
    # Half of the answers are "replaced", as a fresh model's need not be.
    (bias,) = (v for v in model.trainable_variables if v.path == "discriminator_head/output/bias")
    bias.assign(-np.median(model(features)["replaced_logits"], keepdims=True).reshape(1))
    outputs = model(features)
    shapes = {"masked_lm_logits": (40, 3, 50), "sampled_ids": (40, 3), "token_ids": (40, 12)}
    assert {name: tuple(value.shape) for name, value in outputs.items()} == shapes | {"replaced_logits": (40, 12)}
    assert {value.dtype.name for name, value in outputs.items() if name.endswith("logits")} == {"float32"}
    expected, total, read, expected_metrics = float64_losses(outputs, features)
    np.testing.assert_array_equal(outputs["token_ids"], read)
    losses, metrics = model.loss_sums(features, training=False)
    weights = model.loss_weights(features)
    assert set(losses) == set(weights) == set(expected)
    for name, loss in expected.items():
        assert float(losses[name]) == pytest.approx(loss, rel=1e-5)
    ours = sum(model.loss_coefficients.get(k, 1) * float(losses[k]) / float(weights[k]) for k in losses)
    assert ours == pytest.approx(total, rel=1e-5)
    assert set(metrics) == set(expected_metrics)
    assert 0 < expected_metrics["discriminator_recall"] < 1 and expected_metrics["sampled_accuracy"] > 0
    for name, value in expected_metrics.items():
        assert float(metrics[name][0] / metrics[name][1]) == pytest.approx(value, rel=1e-6), name


def test_a_step_of_training_compares_no_pairs_of_tokens():
    """The area under the ROC curve takes numbers of [B, S, S], and is a metric of evaluation alone."""
    model, features = make(), batch()
    training = model.loss_sums(features, training=True)[1]
    assert model.loss_sums(features, training=False)[1].keys() - training.keys() == {"discriminator_auc"}
    model.compile(AdamW(1e-3))
    assert "discriminator_auc" not in model.fit(features, verbose=0).history
    assert 0 <= model.evaluate(features, verbose=0, return_dict=True)["discriminator_auc"] <= 1


def test_samples_follow_the_generator():
    model, rows = make(), 4000
    one = {k: np.repeat(v[:1], rows, 0) for k, v in batch().items()}
    one["sampling_bits"] = np.random.default_rng(1).integers(0, 2**24, (rows, 3), "int32")
    outputs = model.predict(one, verbose=0, batch_size=1000)
    probabilities = softmax(np.asarray(outputs["masked_lm_logits"][0, 0], "float64"))
    counts = np.bincount(outputs["sampled_ids"][:, 0], minlength=50)
    sigma = np.sqrt(rows * probabilities * (1 - probabilities))
    errors = np.abs(counts - rows * probabilities) / sigma
    assert (errors[probabilities > 0.005] < 4).all() and (errors[probabilities > 0.005] < 3).mean() > 0.95


def test_no_gradient_flows_through_the_sampling():
    model, features = make(), batch()

    def gradients_of(loss):
        return gradients(model, lambda: model.loss_sums(features, training=False)[0][loss])

    for path, gradient in gradients_of("discriminator").items():
        if path.startswith("generator/"):
            assert largest(gradient) == 0, path
        elif not path.endswith("key/bias"):  # a constant added to all scores changes no softmax
            assert largest(gradient) > 1e-4, path
    for path, gradient in gradients_of("masked_lm").items():
        of_discriminator = path.startswith(("transformer_layer", "embedding_projection", "discriminator_head"))
        assert (largest(gradient) == 0) == of_discriminator or path.endswith("key/bias"), path


def test_a_graph_with_unknown_shapes():
    assert_same_sums_in_a_graph(make(), batch(), 1e-5)


@pytest.mark.parametrize("family, more", [
    ("bert", {}), ("roberta", {}), ("distilbert", {}), ("albert", {"embedding_size": 10}),
])  # fmt: skip
def test_on_the_families_with_berts_embeddings(family, more):
    sizes = SIZES | {"num_layers": 1, "num_heads": 2, "intermediate_size": 48}
    config = build_config({"family": family} | sizes | more)
    discriminator = build_backbone(config, pooler=False)
    small = generator_config(config, 0.25)
    assert (small.hidden_size, small.num_heads, small.intermediate_size) == (6, 1, 24)
    assert small.activation == config.activation and small.embedding_size == more.get("embedding_size", 24)
    model = ReplacedTokenDetection(discriminator, make_generator(discriminator, small))
    assert model.generator.embedding_table is discriminator.embedding_table
    losses, _ = model.loss_sums(batch(), training=True)
    assert all(np.isfinite(float(loss)) for loss in losses.values())


@pytest.mark.parametrize("family, name", [("xlnet", "XLNet"), ("modernbert", "ModernBert")])
def test_other_families_are_refused(family, name):
    sizes = {key: value for key, value in SIZES.items() if key != "max_positions"} | {"num_heads": 2}
    discriminator = build_backbone(build_config({"family": family} | sizes))
    with pytest.raises(ConfigError, match=f"{name}.*replaced token detection is for ELECTRA, BERT and"):
        make_generator(discriminator, generator_config(discriminator.config))


def test_without_a_generator_it_only_detects():
    model, features = make(), batch()
    detector = ReplacedTokenDetection(model.backbone)
    assert set(detector(features)) == {"replaced_logits"}
    for method in (lambda: detector.loss_weights(features), lambda: detector.loss_sums(features, False)):
        with pytest.raises(ConfigError, match="cannot be trained without a generator; make one with make_generator"):
            method()


def test_errors():
    discriminator = ElectraEncoder(CONFIG)
    with pytest.raises(ConfigError, match="the shared embeddings have embedding_size=12, the configuration says 10"):
        make_generator(discriminator, dataclasses.replace(generator_config(CONFIG), embedding_size=10))
    with pytest.raises(ConfigError, match="of 0.01 of the width 24 has no width left"):
        generator_config(CONFIG, 0.01)
