"""Writing a served model: a numbered version that is whole, and was loaded once, or is not there."""

import contextlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.backend import check_exports
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.export.signatures import TRIAL_TEXTS
from bert_tf.export.warmup import write_warmup_requests
from bert_tf.files import atomic_folder, lock_directory, writes_to


class ExportError(RuntimeError):
    """A written model does not load, or does not compute what the model in memory computes.

    This is a defect of the library or of your own `ServingModule`, so it is not a `UserError`. What a user can fix,
    such as weights that are not finite, raises `DataError`.
    """


@writes_to("folder")
def write_saved_model(module, folder, version=None):
    """Writes `folder/<version>/`, as TF Serving expects it below a model's base path.

    The version is written under a temporary name, loaded as TF Serving loads it (a v1 session, no Keras, no Python
    objects), compared with the model in memory, and only then renamed: a server that watches the folder sees whole
    versions only. One process at a time writes into the folder; the next removes what a killed one left.

    Beside the SavedModel: `assets/tokenizer/` (what `load_tokenizer` reads, for callers of `ids`),
    `assets/labels.json` where there are labels, `assets/export.json` (`ServingModule.settings`), and
    warm-up requests in `assets.extra/`.

    Args:
        module: a `ServingModule`.
        folder: the model's base path.
        version: positive int; None takes the next free number.

    Returns:
        The path of the version.

    Raises:
        ConfigError: a version that is no positive int.
        RunDirectoryError: the version exists, or the folder cannot be written.
        DataError: weights that are not finite, or so large that the answers are not.
        ExportError: the verification failed; no part of the version is left in the folder.
    """
    check_exports("a SavedModel")
    folder = Path(folder)
    check_version(folder, version)
    traced = module.traced()
    with lock_directory(folder, wait=True):
        final = folder / str(version or _next_version(folder))
        _check_free(final)
        with atomic_folder(final) as temporary:
            _write(temporary, module, traced)
            verify(temporary, module, traced)
    return final


def _write(folder, module, traced):
    tf.saved_model.save(module, str(folder), signatures=traced)
    module.write_files(folder / "assets")
    inputs = module.trial_inputs("serving_default")
    # One text in each request: a server may be configured for batches of any size.
    requests = [{k: v[i : i + 1] for k, v in inputs.items()} for i in range(len(TRIAL_TEXTS))]
    write_warmup_requests(folder, "serving_default", requests)


def verify(folder, module, traced):
    """Loads a SavedModel into a v1 session and compares every signature with the functions in memory.

    Args:
        folder: the SavedModel.
        module: the `ServingModule` that was saved.
        traced: its signatures as concrete functions, by name.

    Raises:
        DataError: the functions in memory answer with numbers that are not finite.
        ExportError: it does not load, or gives other answers.
    """
    inputs = {name: module.trial_inputs(name) for name in traced}
    expected = {name: _numpy(function(**inputs[name])) for name, function in traced.items()}
    for name, outputs in expected.items():
        for key, value in outputs.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise DataError(
                    f"the model answers with numbers that are not finite ({name}.{key}), its weights being too large: "
                    "the training that they are from diverged; train again with a lower learning rate"
                )
    inputs = {name: _numpy(tensors) for name, tensors in inputs.items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, _quiet():
        try:
            definitions = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def
            for name in traced:
                outputs = _run(session, definitions[name], inputs[name])
                for key, value in expected[name].items():
                    _compare(f"{name}.{key}", value, outputs[key], module.tolerance)
        except tf.errors.OpError as error:
            raise ExportError(f"the exported model cannot be loaded and run: {error.message}") from error


def _run(session, definition, inputs):
    feeds = {definition.inputs[name].name: value for name, value in inputs.items()}
    return session.run({name: output.name for name, output in definition.outputs.items()}, feeds)


@contextlib.contextmanager
def _quiet():
    """Hides TensorFlow's advice to use `tf.saved_model.load`, which does not fail where the C++ loader fails."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _compare(name, expected, actual, tolerance):
    if expected.dtype.kind == "f" and expected.shape == actual.shape:
        same = np.allclose(expected, actual, rtol=tolerance, atol=tolerance)
    else:
        same = np.array_equal(expected, actual)
    if not same:
        raise ExportError(f"the exported model gives another '{name}' than the model in memory; nothing was written")


def _numpy(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def check_version(folder, version):
    """Refuses a version that `write_saved_model` could not write; None is fine.

    Raises:
        ConfigError: it is no positive int.
        RunDirectoryError: it exists.
    """
    if version is None:
        return
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ConfigError(f"version={version!r} is not a positive whole number")
    _check_free(Path(folder) / str(version))


def _check_free(version):
    if version.exists():
        raise RunDirectoryError(
            f"{version} exists already; choose another version, or leave it out for the next free one"
        )


def _next_version(folder):
    numbers = [int(p.name) for p in folder.glob("*") if p.name.isdecimal()]
    return max(numbers, default=0) + 1
