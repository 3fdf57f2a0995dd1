"""The contract of a pretraining objective, checked on a few sequences of shards."""

import keras
import numpy as np
import tensorflow as tf

from bert_tf.backend import AdamW
from bert_tf.config import build, to_dict
from bert_tf.objectives import ObjectiveConfig
from bert_tf.testing.corruption import check_corruption, parts_of

ROWS = 8


def check_objective(record, backbone, reader, tokenizer, folder, settings=None, xla=True, tolerance=1e-4, draws=True):
    """Checks an objective from its settings to a step of training.

    - Its settings come back the same from a configuration, and from the model that they make.
    - The corruption passes `check_corruption`. An objective may have none.
    - The sums and weights of losses and metrics are those of the parts of a batch, added up. So micro-batches and
      replicas do not change them.
    - Gradients reach the backbone and each part of the objective beside it.
    - A step of training, compiled by XLA, has the loss that these sums give, and changes the weights.
    - Saved after it and loaded, the model has the same settings and losses, and the optimizer goes on. A model that
      `keras.models.clone_model` makes has the same settings, and with the same weights the same losses.

    Args:
        record: a registered `Objective`.
        backbone: a small backbone without dropout, with a pooler if the settings need one. It is trained.
        reader: a `ShardReader` with 8 sequences or more.
        tokenizer: that of the shards.
        folder: an empty folder to write into, a Path.
        settings: an instance of `record.config`; None for its defaults.
        xla: whether XLA compiles the step, which takes most of the time.
        tolerance: of numbers that must be equal up to rounding, relative.
        draws: False for a corruption that draws nothing: it gives the same for every seed and epoch.

    Raises:
        AssertionError: the objective breaks the contract.

    Example:
        reader = ShardReader("shards", tokenizer)
        check_objective(OBJECTIVES["masked_lm"], encoder, reader, tokenizer, tmp_path, xla=False)
    """
    settings = (settings or record.config()).for_shards(reader.manifest.packing, reader.sequence_length)
    assert type(settings) is record.config
    assert build(ObjectiveConfig, to_dict(settings)) == settings
    batch = next(iter(reader.dataset(ROWS, seed=0)))
    corruption = record.make_corruption(settings, tokenizer, reader)
    features = batch if corruption is None else check_corruption(corruption, batch, draws)
    model = record.model_class.from_settings(backbone, settings)
    again = build(ObjectiveConfig, to_dict(model.settings))
    assert type(again) is record.config and again == model.settings
    weights = _check_sums(model, features, tolerance)
    _check_gradients(model, features)
    _check_step(model, features, weights, xla, tolerance)
    _check_saved(model, features, folder / "model.keras", tolerance)


def _check_sums(model, features, tolerance):
    """The loss sums and weights of a batch, which must be those of its parts added up."""

    def sums(features):
        losses, metrics = model.loss_sums(features, training=False)
        return keras.tree.map_structure(float, [losses, metrics, model.loss_weights(features)])

    losses, _, weights = all_sums = sums(features)
    assert losses.keys() == weights.keys() and all(weight > 0 for weight in weights.values())
    first, second = map(sums, parts_of(features))
    added = keras.tree.map_structure(lambda a, b: a + b, first, second)
    for actual, expected in zip(keras.tree.flatten(all_sums), keras.tree.flatten(added), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    return weights


def _check_gradients(model, features):
    with tf.GradientTape() as tape:
        losses, _ = model.loss_sums(features, training=True)
        total = sum(losses.values())
    variables = model.trainable_variables
    reached = {}
    backbone_paths = {variable.path for variable in model.backbone.variables}
    for variable, gradient in zip(variables, tape.gradient(total, [v.value for v in variables])):
        part = "backbone" if variable.path in backbone_paths else variable.path.split("/")[0]
        size = 0.0 if gradient is None else float(np.abs(tf.convert_to_tensor(gradient)).max())
        assert np.isfinite(size), f"the gradient of {variable.path} is not finite"
        reached[part] = max(size, reached.get(part, 0.0))
    without = [part for part, size in reached.items() if size == 0]
    assert "backbone" in reached and not without, f"no gradient reaches {', '.join(without) or 'the backbone'}"


def _check_step(model, features, weights, xla, tolerance):
    losses, _ = model.loss_sums(features, training=True)  # a loss may have terms of training alone
    expected = sum(
        model.loss_coefficients.get(name, 1) * float(value) / weights[name] for name, value in losses.items()
    )
    before = [variable.numpy() for variable in model.trainable_variables]
    model.compile(AdamW(1e-3), xla=xla)
    loss = model.fit(tf.data.Dataset.from_tensors(features), verbose=0).history["loss"][0]
    np.testing.assert_allclose(loss, expected, rtol=tolerance)
    changed = [not np.array_equal(v, value) for v, value in zip(model.trainable_variables, before)]
    assert any(changed), "a step of training changes no weight"


def _check_saved(model, features, path, tolerance):
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded) is type(model) and loaded.settings == model.settings
    assert [v.path for v in loaded.weights] == [v.path for v in model.weights]
    assert type(loaded.optimizer) is type(model.optimizer) and int(loaded.optimizer.iterations) == 1
    clone = keras.models.clone_model(model)
    assert type(clone) is type(model) and clone.settings == model.settings
    clone.set_weights(model.get_weights())
    expected, _ = model.loss_sums(features, training=False)
    for again in (loaded, clone):
        for name, value in again.loss_sums(features, training=False)[0].items():
            np.testing.assert_allclose(float(value), float(expected[name]), rtol=tolerance, err_msg=name)
