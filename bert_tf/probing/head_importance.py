"""How much a fine-tuned model's loss depends on each attention head.

Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 4; Hugging Face's run_bertology.py.
"""

import numpy as np
import tensorflow as tf

from bert_tf.backend import check_exports
from bert_tf.errors import ConfigError
from bert_tf.layers import Attention
from bert_tf.probing.head_grid import head_grid
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import ProbeTable


class HeadImportance(Probe):
    """How much does the loss of a fine-tuned model depend on each attention head? A row for each layer, bottom first.

    Facts: "layers", the importance of each head, float [layers][heads], of each layer the L2 norm is 1; "count", the
    examples that it was computed on.

    Example:
        task = build_task({"sequence_length": 16}, tokenizer)
        examples = task.read({"text": ["a good film", "a bad film"], "label": ["pos", "neg"]})
        task = task.learn(examples)
        importance_of_heads(task, task.model(encoder), examples)
    """

    name, title, asks, has_control = "head_importance", "importance of heads", "task", False
    unit = "examples"

    def read(self, path, most=None):
        """(path, most): the task of the model reads its own files."""
        return path, most

    def run(self, model, rows, progress=None):
        task, task_model = model
        path, most = rows
        layers, count = importance_of_heads(task, task_model, task.read(path), most, progress)
        rows = []
        for number, values in enumerate(layers, 1):
            most, least = int(np.argmax(values)), int(np.argmin(values))
            rows.append((f"layer {number}", [values[most], most + 1, values[least], least + 1]))
        note = (
            f"The mean of |dL/dm| over {count:,} examples, m a factor of what the head adds; each layer has the norm 1."
        )
        figures, facts = [head_grid("importance", np.array(layers))], {"layers": layers, "count": count}
        return ProbeTable(self.title, ["largest", "head", "smallest", "head"], rows, note, figures, facts=facts)


def importance_of_heads(task, model, examples, most=None, progress=None):
    """(float [layers][heads], the examples): the mean over examples of |dL/dm|, divided by its L2 norm in the layer.

    m is a factor of what a head adds to the output of its layer, at m = 1 (equation 2). A head adds its vectors times
    its rows of the output kernel, so dL/dm is the sum of these rows times their gradient, and no mask is needed.

    Args:
        task, model: a `Task` and its model.
        examples: labelled `Examples`.
        most: the first so many of them; None for all.
        progress: function(examples done, all); None for nothing.

    Raises:
        ConfigError: a model whose layers share their weights (ALBERT), or have no such attention (XLNet, LSTMs).
    """
    check_exports("the importance of heads")
    blocks = model.backbone.blocks()
    attentions = [getattr(block, "attention", None) for block in blocks]
    if len({id(block) for block in blocks}) < len(blocks) or not all(isinstance(a, Attention) for a in attentions):
        raise ConfigError(
            f"the importance of heads is not defined for {type(model.backbone).__name__}: each layer must have an attention "
            "of its own, as in BERT, RoBERTa, ELECTRA, DistilBERT, ModernBERT and GPT"
        )
    kernels = [attention.output_projection.kernel for attention in attentions]
    heads = [attention.num_heads for attention in attentions]
    lengths = task.sequences(examples).lengths
    chosen = range(len(lengths) if most is None else min(most, len(lengths)))
    plan = [(np.array([index]), int(lengths[index])) for index in chosen]
    dataset = task.sequences(examples).dataset(plan, task.tokenizer, task.config.sequence_length)

    def gradients(features):
        with tf.GradientTape() as tape:
            losses, _ = model.loss_sums(features, training=False)
            loss = tf.add_n(list(losses.values()))
        of_layers = zip(tape.gradient(loss, [kernel.value for kernel in kernels]), kernels, heads)
        return [tf.abs(tf.reduce_sum(tf.reshape(g * kernel, (n, -1)), axis=1)) for g, kernel, n in of_layers]

    graph = tf.function(gradients, autograph=False).get_concrete_function(dataset.element_spec)
    totals = [np.zeros(n) for n in heads]
    for step, features in enumerate(dataset):
        totals = [total + gradient.numpy() for total, gradient in zip(totals, graph(features))]
        if progress is not None:
            progress(step + 1, len(plan))
    return [(total / max(np.linalg.norm(total), 1e-20)).tolist() for total in totals], len(plan)
