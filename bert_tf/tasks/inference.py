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


def outputs_of(task, model, examples, batch_size, soon=False):
    """What a model answers for each sequence of a task's examples, in their order: a list of dicts of arrays.

    With `soon` a batch that comes alone is answered sooner: neither its features nor, at first, the model become a graph,
    whose numbers differ by rounding. Otherwise always by the same graph, bit by bit.
    """
    sequences = task.sequences(examples)
    plan, full = sequences.plan(task.config, batch_size, static_shapes=model.static_shapes), None
    if soon and len(plan) == 1 and not model.static_shapes:
        features = _taken(sequences.batch(plan[0], task.tokenizer, task.config.sequence_length), task.inferred)
        answer = model.infer_alone(features, lambda: batches(task, sequences, plan).element_spec)
        outputs = dict(zip(plan[0][0], _rows(answer, len(plan[0][0]))))
    else:
        if model.static_shapes:
            full = -(-max(len(indexes) for indexes, _ in plan) // model.num_replicas) * model.num_replicas
        outputs = dict(infer(task, sequences, plan, model.infer, static_size=full))
    return [outputs[index] for index in range(len(sequences.lengths))]


def _rows(outputs, count):
    if not isinstance(outputs, dict):
        return np.asarray(outputs)
    outputs = {name: np.asarray(array) for name, array in outputs.items()}
    return ({name: array[row] for name, array in outputs.items()} for row in range(count))
