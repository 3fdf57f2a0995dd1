"""The contract of a fine-tuning task, checked on a few examples."""

import json

import keras
import numpy as np
import tensorflow as tf

import bert_tf
from bert_tf.backend import AdamW
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.config import to_dict
from bert_tf.export.served import SERVED
from bert_tf.markup import render
from bert_tf.registry import resolve
from bert_tf.reporting.examples import findings_section
from bert_tf.tasks import build_task
from bert_tf.tasks.record import check_task as check_settings
from bert_tf.testing.export import check_export

FEATURES = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}

#: What a batch of labelled examples has, one of these.
LABELS = (
    {"labels", "label_weights"},
    {"target_ids", "target_weights"},
    {"start_positions", "end_positions", "label_weights"},
)


def check_task(record, file, encoder, tokenizer, folder, tolerance=1e-4, **settings):
    """Checks a task from its data to its export.

    - Its settings come back the same; reading and predicting do not change it.
    - Every example is in one batch of an epoch; an epoch can be resumed at any step.
    - Padding has no effect on the loss, nor the batch size on metrics and predictions.
    - Training with Keras's callbacks changes the loss. What they saved has the same settings, outputs and optimizer, and
      makes the same next updates, also as a subclass with a `train_step` of its own.
    - `keras.models.clone_model` and files of weights make the same model again.
    - In bfloat16 it is trained and evaluated, with a loss close to that of float32.
    - `bert_tf.save` writes a run from memory, and `bert_tf.load` opens the same task and model.
    - There is one prediction for each input, which JSON can hold; the metrics hold the task's `metric`.
    - The findings, if it has any, can be held by JSON and drawn on the page of a report.
    - The export passes `check_export`, where the task has one.

    Args:
        record: a registered `TaskRecord`.
        file: a labelled file with three examples or more.
        encoder: a small encoder without dropout, with at least 32 positions.
        tokenizer: the encoder's.
        folder: where the run and the export are written, a Path.
        tolerance: relative, of numbers that must be equal up to rounding.
        settings: of the task, such as `labels`.

    Example:
        check_task(TASKS["classification"], "train.tsv", encoder, tokenizer, tmp_path)
    """
    exact = {"head": {"dropout": 0.0}} if hasattr(record.config, "head") else {}
    settings = {"kind": record.name, "sequence_length": 32} | settings
    if "head" in settings and exact:
        exact = {"head": settings["head"]}
    unlearned = build_task(settings | exact, tokenizer, backbone=encoder)
    state = unlearned.state
    examples = unlearned.read(file)
    task = unlearned.learn(examples)
    assert type(task) is resolve(record.task) and type(task.config) is record.config
    assert check_settings(to_dict(task.config)) == task.config
    learned = task.state
    _check_batches(task, examples)
    model = task.model(encoder)
    _check_training(task, model, examples, folder, tolerance)
    answers = _check_answers(task, model, examples, file, tolerance)
    _check_bfloat16(task, model, encoder, examples)
    assert unlearned.state == state and task.state == learned
    bert_tf.save(model, None, folder / "run", format="run", task=task)
    again = bert_tf.load(folder / "run")
    assert again.task.config == task.config and again.task.metric == task.metric and again.task.state == learned
    _check_outputs(again.model, model, task.dataset(examples, 2))
    assert again.task.predict(model, again.task.read(file, labelled=False), batch_size=2) == answers
    if record.name in SERVED:
        check_export(SERVED[record.name].of_task(again.task, model, sequence_length=32), folder / "export")


def _check_batches(task, examples):
    steps = task.steps_per_epoch(examples, 2)
    epoch = list(task.dataset(examples, 2, training=True, seed=1))
    assert len(epoch) == steps
    for features in epoch:
        assert FEATURES.items() <= {name: x.dtype for name, x in features.items()}.items()
        assert any(names <= features.keys() for names in LABELS)
    assert sum(len(f["token_ids"]) for f in epoch) == len(task.sequences(examples).lengths)
    resumed = list(task.dataset(examples, 2, training=True, seed=1, start_step=1))
    for a, b in zip(epoch[1:], resumed, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def _check_training(task, model, examples, folder, tolerance):
    (padded,) = task.dataset(examples, 1000, static_shapes=True)
    before = _loss(model, [padded])
    apart = _loss(model, task.dataset(examples, 1))  # each padded to its own length bucket
    np.testing.assert_allclose(apart, before, rtol=tolerance)
    weights = model.get_weights()
    model.compile(AdamW(1e-3))
    path = folder / "model.keras"
    callbacks = [
        keras.callbacks.ModelCheckpoint(path),
        keras.callbacks.EarlyStopping("loss", restore_best_weights=True),
        keras.callbacks.BackupAndRestore(folder / "backup"),
    ]
    model.fit(task.dataset(examples, 2, training=True), callbacks=callbacks, verbose=0)
    assert np.isfinite(_loss(model, [padded])) and _loss(model, [padded]) != before
    _check_saved(model, path, task.dataset(examples, 2))
    model.set_weights(weights)


def _check_saved(model, path, batches):
    """Of a model that was trained and then saved: what is loaded, cloned, and trained further."""
    loaded = keras.saving.load_model(path)
    check_same_model(loaded, model, batches)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)

    class Own(type(model)):
        def train_step(self, features):
            return super().train_step(features)

    with keras.saving.custom_object_scope({keras.saving.get_registered_name(type(model)): Own}):
        of_subclass = keras.saving.load_model(path)
    for one in (of_subclass, model):
        one.fit(batches, verbose=0)
    check_same_model(of_subclass, model, batches)
    clone = keras.models.clone_model(model)
    model.save_weights(path.with_suffix(".weights.h5"))
    clone.load_weights(path.with_suffix(".weights.h5"))
    check_same_model(clone, model, batches)


def check_same_model(model, expected, batches):
    """Checks that a model has the settings, weights and outputs of another."""
    assert isinstance(model, type(expected)) and model.get_config() == expected.get_config()
    for variable, other in zip(model.weights, expected.weights, strict=True):
        assert variable.path == other.path and variable.trainable == other.trainable
        np.testing.assert_array_equal(variable, other, err_msg=variable.path)
    _check_outputs(model, expected, batches)


def _check_outputs(model, expected, batches):
    features = next(iter(batches))
    keras.tree.map_structure(np.testing.assert_array_equal, model(features), expected(features))


def _check_bfloat16(task, model, encoder, examples):
    with dtype_policy("mixed_bfloat16"):
        mixed = task.model(type(encoder).from_config(encoder.get_config() | {"dtype": "mixed_bfloat16"}))
    assert mixed.compute_dtype == "bfloat16"
    for variable, other in zip(mixed.weights, model.weights, strict=True):
        variable.assign(other)
    clone = keras.models.clone_model(mixed)  # where another policy is the global one
    clone.set_weights(mixed.get_weights())
    check_same_model(clone, mixed, task.dataset(examples, 2))
    exact, rounded = (task.evaluate(one, examples)["loss"] for one in (model, mixed))
    np.testing.assert_allclose(rounded, exact, rtol=0.1)
    mixed.compile(AdamW(1e-3))
    mixed.fit(task.dataset(examples, 2, training=True), verbose=0)
    assert np.isfinite(task.evaluate(mixed, examples)["loss"])


def _loss(model, batches):
    sums, weights = 0.0, 0.0
    for features in batches:
        losses, _ = model.loss_sums(features, training=False)
        sums += float(sum(losses.values()))
        weights += float(sum(model.loss_weights(features).values()))
    return sums / weights


def _check_answers(task, model, examples, file, tolerance):
    alone = task.evaluate(model, examples, batch_size=1)
    together = task.evaluate(model, examples, batch_size=1000, findings=True)
    findings = together.pop("findings")
    assert task.metric in alone and alone["examples"] == len(examples)
    for name, value in alone.items():
        if isinstance(value, float):
            np.testing.assert_allclose(value, together[name], rtol=tolerance, atol=tolerance, err_msg=name)
    assert json.loads(json.dumps(findings, allow_nan=False)) == findings
    assert not findings or "<h2>" in render(findings_section("dev", findings))
    for metrics in task.baselines(examples, examples).values():
        assert task.metric in metrics
    unlabelled = task.read(file, labelled=False)
    answers = task.predict(model, unlabelled, batch_size=2)
    assert len(answers) == len(unlabelled) + len(unlabelled.unusable_rows)
    json.dumps(answers, allow_nan=False)
    assert task.predict(model, []) == []
    return answers
