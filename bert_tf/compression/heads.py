"""Attention heads: how much each matters, and models without some of them.

Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 4; Hugging Face's run_bertology.py.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, build_encoder, family_of
from bert_tf.progress import Progress


def head_importance(task, model, examples, limit=256, label="importance of heads"):
    """How much the loss depends on each head: the mean over examples of |dL/dm|, divided by its L2 norm in the layer.

    m is a factor of what a head adds to the output of its layer, at m = 1 (equation 2). A head adds its vectors times
    its rows of the output kernel, so that dL/dm is the sum of these rows times their gradient: there is no mask.

    Args:
        task, model: a `Task` and its model, on an encoder whose heads can be pruned.
        examples: labelled `Examples`.
        limit: how many of them are read, those that are spread evenly over the file.
        label: of the line of progress.

    Returns:
        A list of float64 arrays, one for each layer, with a number for each head.

    Example:
        task = build_task({"sequence_length": 16}, tokenizer)
        examples = task.examples(["a good film", "a bad film"], labels=["pos", "neg"])
        [len(layer) for layer in head_importance(task, task.model(encoder), examples)]
    """
    kernels = [block.attention.output_projection.kernel for block in prunable_blocks(model.backbone)]
    heads = [block.attention.num_heads for block in model.backbone.blocks()]
    sequences = task.sequences(examples)
    count = len(sequences.lengths)
    chosen = np.unique(np.linspace(0, count - 1, min(limit, count)).astype(int))
    plan = [(np.array([index]), int(sequences.lengths[index])) for index in chosen]
    dataset = sequences.dataset(plan, task.tokenizer, task.config.sequence_length)

    def gradients(features):
        with tf.GradientTape() as tape:
            losses, _ = model.loss_sums(features, training=False)
            loss = tf.add_n(list(losses.values()))
        found = tape.gradient(loss, [kernel.value for kernel in kernels])
        return [
            tf.abs(tf.reduce_sum(tf.reshape(gradient * kernel, (n, -1)), axis=1))
            for gradient, kernel, n in zip(found, kernels, heads)
        ]

    graph = tf.function(gradients, autograph=False).get_concrete_function(dataset.element_spec)
    totals, progress = [np.zeros(n) for n in heads], Progress(label, len(plan), "examples")
    for step, features in enumerate(dataset):
        totals = [total + found.numpy() for total, found in zip(totals, graph(features))]
        progress.update(step + 1)
    progress.finish()
    return [total / max(np.linalg.norm(total), 1e-20) for total in totals]


def prunable_blocks(encoder):
    """The layers of an encoder.

    Raises:
        ConfigError: of a family whose heads cannot be pruned.
    """
    if not is_prunable(type(encoder.config)):
        able = ", ".join(name for name, record in FAMILIES.items() if is_prunable(record.config))
        raise ConfigError(
            f"the heads of the family {family_of(encoder.config).name} cannot be pruned; those of {able} can be"
        )
    return encoder.blocks()


def is_prunable(config_class):
    """Whether the configuration says how many heads each layer has left."""
    return "heads_per_layer" in {field.name for field in dataclasses.fields(config_class)}


def least_important(importance, left, count):
    """The `count` heads that are removed next: a list of (layer, head).

    Args:
        importance: of `head_importance`.
        left: for each layer the set of heads that are left. Each layer keeps one.
        count: how many; fewer are returned where no more can go.
    """
    left, removed = [set(heads) for heads in left], []
    ranked = sorted((importance[layer][head], layer, head) for layer, heads in enumerate(left) for head in heads)
    for _, layer, head in ranked:
        if len(removed) < count and len(left[layer]) > 1:
            left[layer].remove(head)
            removed.append((layer, head))
    return removed


def mask_heads(model, heads):
    """Sets the rows of some heads, pairs (layer, head), in the output kernels to 0: the heads then add nothing."""
    for layer, head in heads:
        attention = model.backbone.blocks()[layer].attention
        kernel = attention.output_projection.kernel
        rows = np.arange(kernel.shape[0]) // (kernel.shape[0] // attention.num_heads) == head
        kernel.assign(tf.where(rows[:, None], 0.0, kernel.value))


def without_heads(task, model, left):
    """A model that has the heads `left` alone, and computes what `model` computes with all others masked.

    Their columns of the kernels of queries, keys and values are removed, and their rows of the output kernels.

    Args:
        task, model: a `Task` and its model.
        left: for each layer the heads that are left, ascending.

    Example:
        task = build_task({"labels": ["neg", "pos"], "sequence_length": 16}, tokenizer)
        smaller = without_heads(task, task.model(encoder), [[1]])  # of one layer with two heads
        [block.attention.num_heads for block in smaller.backbone.blocks()]  # [1]
    """
    blocks = prunable_blocks(model.backbone)
    config = dataclasses.replace(model.backbone.config, heads_per_layer=tuple(map(len, left)))
    smaller = task.model(build_encoder(config, pooler="pooled_output" in model.backbone.output))
    values = {v.path: np.asarray(v.value) for v in model.variables}
    for block, heads in zip(blocks, left):
        attention = block.attention
        size = attention.output_projection.kernel.shape[0] // attention.num_heads
        columns = np.concatenate([np.arange(head * size, (head + 1) * size) for head in heads])
        for projection in (attention.query, attention.key, attention.value):
            for v in projection.weights:
                values[v.path] = values[v.path][..., columns]
        path = attention.output_projection.kernel.path
        values[path] = values[path][columns]
    for v in smaller.variables:
        v.assign(values[v.path])
    return smaller
