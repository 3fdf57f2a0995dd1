"""The outputs of a model for the sequences of a task, in batches: the one loop of evaluation, prediction, teachers and others."""

import numpy as np


def batches(task, sequences, plan, names=None, static_size=None):
    """A `tf.data.Dataset` of the features of the batches of `plan` that a function takes; arguments as of `infer`."""
    dataset = sequences.dataset(plan, task.tokenizer, task.config.sequence_length, static_size=static_size)
    return dataset.map(lambda features: _taken(features, task.inferred if names is None else names))


def _taken(features, names):
    return {name: features[name] for name in names if name in features}


def infer(task, sequences, plan, compute, names=None, static_size=None, progress=None):
    """Computes something of each sequence.

    Args:
        task: a `Task`.
        sequences: its `Sequences`.
        plan: the batches, of `Sequences.plan`.
        compute: function from the features of a batch to a tensor or array [B, ...], or a dict of them. A `tf.function`
            is traced once, for all shapes.
        names: the features that it takes, where they are there; None for those of the task's model.
        static_size: as of `Sequences.dataset`.
        progress: a `Progress` of batches, or None.

    Yields:
        (index of the sequence, what `compute` returns for it), batch by batch.

    Example:
        sequences = task.sequences(task.read(["a good film"], labelled=False))
        outputs = dict(infer(task, sequences, sequences.plan(task.config, 32), model.infer))
        outputs[0]["probabilities"]
    """
    dataset = batches(task, sequences, plan, names, static_size)
    if hasattr(compute, "get_concrete_function"):
        compute = compute.get_concrete_function(dataset.element_spec)
    for step, ((indexes, _), features) in enumerate(zip(plan, dataset, strict=True), start=1):
        yield from zip(indexes, _rows(compute(features), len(indexes)))
        if progress:
            progress.update(step)
    if progress:
        progress.finish()


def infer_one_batch(task, sequences, planned, model):
    """As `infer` with `model.infer` of one batch of a plan, sooner: neither the data nor a new model becomes a graph."""
    features = _taken(sequences.batch(planned, task.tokenizer, task.config.sequence_length), task.inferred)
    outputs = model.infer_alone(features, lambda: batches(task, sequences, [planned]).element_spec)
    return zip(planned[0], _rows(outputs, len(planned[0])))


def _rows(outputs, count):
    if not isinstance(outputs, dict):
        return np.asarray(outputs)
    outputs = {name: np.asarray(array) for name, array in outputs.items()}
    return ({name: array[row] for name, array in outputs.items()} for row in range(count))
