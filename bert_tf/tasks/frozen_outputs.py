"""What a frozen model computes of a task's examples: once, and not again in each epoch."""

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.progress import Progress
from bert_tf.tasks.features import FROZEN_OUTPUTS
from bert_tf.tasks.heads import INPUTS, backbone_inputs
from bert_tf.tasks.inference import batches, infer_batches

#: A file's outputs are kept in memory up to so many bytes. A fixed number: on every machine a run computes the same.
MOST_BYTES = 4 * 2**30


def keep_frozen_outputs(task, model, examples, batch_size, most_bytes=MOST_BYTES):
    """Computes the outputs of the layers that `task.frozen_layers` reads, and gives them to the batches of `examples`.

    The model then reads them there instead of computing them: [B, S, layers, H], in the precision of the model.
    They differ by rounding from what it computes itself, whose batches are padded to other lengths.

    Args:
        task: a `Task` with `task.frozen_layers`.
        model: its model.
        examples: `Examples`.
        batch_size: as in training.
        most_bytes: where they would take more nothing is kept.

    Returns:
        Whether they are kept. They are not on a TPU, nor of several rows an example (choices), nor where the model
        reads a pair in both orders.

    Example:
        task = build_task({"frozen_layers": {"name": "last"}}, tokenizer)
        train = task.read({"text": ["a film", "a"], "label": ["1", "0"]})
        task = task.learn(train)
        keep_frozen_outputs(task, task.model(encoder), train, batch_size=32)  # True
    """
    extras = task.sequences(examples).extras
    if FROZEN_OUTPUTS in extras:  # of another model, such as that of the seed before
        task.add_features(examples, {name: extra for name, extra in extras.items() if name != FROZEN_OUTPUTS})
    if model.static_shapes or getattr(model, "both_orders", None) is not None:
        return False
    layers, backbone, sequences = model.mixes[0].numbers, model.backbone, task.sequences(examples)
    shape = (int(sequences.lengths.sum()), len(layers), backbone.config.hidden_size)
    dtypes = {backbone.output["hidden_states"][number].dtype for number in layers}
    dtype = tf.as_dtype(dtypes.pop() if len(dtypes) == 1 else "float32")
    plan = sequences.plan(task.config, batch_size)
    rank = batches(task, sequences, plan, INPUTS).element_spec["padding_mask"].shape.rank
    if rank != 2 or int(np.prod(shape)) * dtype.size > most_bytes:
        return False

    @model.compiled_call
    def compute(inputs):
        states = backbone(backbone_inputs(backbone, inputs), training=False)["hidden_states"]
        return ops.stack([ops.cast(states[number], dtype.name) for number in layers], axis=2)

    values, starts = np.empty(shape, dtype.as_numpy_dtype), np.cumsum(sequences.lengths) - sequences.lengths
    progress = Progress("outputs of the frozen model,", len(plan), "batches")
    for indexes, of_batch in infer_batches(task, sequences, plan, compute, INPUTS, progress=progress):
        for index, states in zip(indexes, of_batch):
            length = sequences.lengths[index]
            values[starts[index] : starts[index] + length] = states[:length]
    states_of_texts = tf.RaggedTensor.from_row_lengths(values, sequences.lengths)
    task.add_features(examples, sequences.extras | {FROZEN_OUTPUTS: states_of_texts})
    return True
