"""The outputs of a model for the sequences of a task, in batches: the one loop of evaluation, prediction, teachers and others."""

from collections.abc import Sequence

import numpy as np


def batches(task, sequences, plan, names=None, static_size=None):
    """A `tf.data.Dataset` of the features of the batches of `plan` that a function takes; arguments as of `infer_batches`."""
    dataset = sequences.dataset(plan, task.tokenizer, task.config.sequence_length, static_size=static_size)
    return dataset.map(lambda features: _taken(features, task.inferred if names is None else names))


def _taken(features, names):
    return {name: features[name] for name in names if name in features}


def infer(task, sequences, plan, compute, static_size=None, progress=None):
    """Computes something of sequences, batch by batch.

    Args:
        task: a `Task`.
        sequences: its `Sequences`.
        plan: the batches, of `Sequences.plan`.
        compute: function from the features of a batch to a tensor or array [B, ...], or a dict of them. A `tf.function`
            is traced once, for all shapes.
        static_size: as of `Sequences.dataset`.
        progress: a `Progress` of batches, or None.

    Returns:
        `Outputs`.

    Example:
        sequences = task.sequences(task.read(["a good film"], labelled=False))
        outputs = infer(task, sequences, sequences.plan(task.config, 32), model.infer)
        outputs[0]["probabilities"]
    """
    outputs = Outputs(len(sequences.lengths))
    for indexes, arrays in infer_batches(task, sequences, plan, compute, None, static_size, progress):
        outputs.add(indexes, arrays)
    return outputs


def infer_batches(task, sequences, plan, compute, names=None, static_size=None, progress=None):
    """As `infer`, but yields (indexes of the sequences, what `compute` returns for them and for fillers after them).

    `names` are the features that it takes, where they are there; None for those of the task's model.
    """
    dataset = batches(task, sequences, plan, names, static_size)
    if hasattr(compute, "get_concrete_function"):
        compute = compute.get_concrete_function(dataset.element_spec)
    for step, ((indexes, _), features) in enumerate(zip(plan, dataset, strict=True), start=1):
        yield indexes, _as_arrays(compute(features))
        if progress:
            progress.update(step)
    if progress:
        progress.finish()


class Outputs(Sequence):
    """What was computed of each sequence, in the arrays of whole batches: a row is looked up when it is asked for.

    Args:
        count: how many sequences there are.
    """

    def __init__(self, count):
        self._batches, self._places = [], np.full([count, 2], -1, np.int32)  # the batch, the row

    def add(self, indexes, arrays):
        """A batch: the indexes of its sequences, and an array [B, ...] or a dict of them."""
        self._places[indexes] = np.stack([np.full(len(indexes), len(self._batches)), np.arange(len(indexes))], 1)
        self._batches.append(arrays)

    def __len__(self):
        return len(self._places)

    def __getitem__(self, index):
        batch, row = self._places[index]
        if batch < 0:
            raise KeyError(f"sequence {index} is in no batch")  # an IndexError would end an iteration
        arrays = self._batches[batch]
        return {name: array[row] for name, array in arrays.items()} if isinstance(arrays, dict) else arrays[row]


def outputs_of(task, model, examples, batch_size, soon=False):
    """What a model answers for each sequence of a task's examples: `Outputs`.

    With `soon` a batch that comes alone is answered sooner: neither its features nor, at first, the model become a graph,
    whose numbers differ by rounding. Otherwise always by the same graph, bit by bit.
    """
    sequences = task.sequences(examples)
    plan, full = sequences.plan(task.config, batch_size, static_shapes=model.static_shapes), None
    if soon and len(plan) == 1 and not model.static_shapes:
        features = _taken(sequences.batch(plan[0], task.tokenizer, task.config.sequence_length), task.inferred)
        answer = model.infer_alone(features, lambda: batches(task, sequences, plan).element_spec)
        outputs = Outputs(len(sequences.lengths))
        outputs.add(plan[0][0], _as_arrays(answer))
        return outputs
    if model.static_shapes:
        full = -(-max(len(indexes) for indexes, _ in plan) // model.num_replicas) * model.num_replicas
    return infer(task, sequences, plan, model.infer, static_size=full)


def _as_arrays(outputs):
    if not isinstance(outputs, dict):
        return np.asarray(outputs)
    return {name: np.asarray(array) for name, array in outputs.items()}
