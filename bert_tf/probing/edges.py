"""Edge probes: which labels of one span or two can be read from the frozen vectors of their tokens?

Tenney et al. 2019 (What do you learn from context?), section 3 and appendix C: a projection to 256, each span pooled by
self-attention, an MLP, a sigmoid for each label, micro F1; the vectors are a learned mix of all layers (Tenney et al.
2019, BERT rediscovers the classical NLP pipeline, section 3). Beside it stands the same probe on the output of the
embeddings alone.
"""

import dataclasses
from typing import Annotated

import keras
import numpy as np
from keras import ops

from bert_tf.config import Range
from bert_tf.errors import DataError
from bert_tf.layers import ScalarMix
from bert_tf.probing.edge_files import read_spans
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import ProbeTable
from bert_tf.tasks.sequences import tokenize_with_offsets


class EdgeProbe(keras.Model):
    """Logits of labels from the vectors of spans.

    Args:
        labels, layers: int.
        spans: 1 or 2; each has a projection and a pooling of its own.
        config: `Edges`.

    Call arguments:
        a tuple for each span: float [B, layers, S, H], and 1 for its tokens and 0 for padding [B, S].

    Returns:
        float32 [B, labels].

    Example:
        vectors, real = np.ones((2, 3, 4, 8), "float32"), np.ones((2, 4), "float32")
        EdgeProbe(5, 3, 1, Edges())((vectors, real)).shape  # [2, 5]
    """

    def __init__(self, labels, layers, spans, config):
        super().__init__()
        self.mix = ScalarMix(layers, name="mix")
        self.projections = [keras.layers.Dense(config.projection, name=f"projection_{i}") for i in range(spans)]
        self.attentions = [keras.layers.Dense(1, name=f"attention_{i}") for i in range(spans)]
        self.hidden = keras.layers.Dense(config.hidden, activation="tanh", name="hidden")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, name="norm")
        self.dropout = keras.layers.Dropout(config.dropout, name="dropout")
        self.output_layer = keras.layers.Dense(labels, name="output")
        self.mix.build()

    def call(self, inputs, training=False):
        pooled = []
        for i, (projection, attention) in enumerate(zip(self.projections, self.attentions)):
            vectors, real = inputs[2 * i], inputs[2 * i + 1]
            x = projection(self.mix([vectors[:, layer] for layer in range(vectors.shape[1])]))  # [B, S, projection]
            weights = ops.softmax(attention(x)[..., 0] + (real - 1.0) * 1e9, axis=-1)
            pooled.append(ops.einsum("bs,bsh->bh", weights, x))
        x = self.norm(self.hidden(ops.concatenate(pooled, axis=-1)))
        return self.output_layer(self.dropout(x, training=training))


@dataclasses.dataclass(frozen=True)
class Edges(Probe):
    """Can the labels of one span or two be read from their vectors? By probes that are trained on other examples.

    "F1": micro F1 on the test examples; a label is predicted above a probability of 0.5. "majority": that of always
    predicting the most frequent label. Rows: the mix of all layers, and the output of the embeddings alone, which knows
    words and not their context. "mean layer" is by the learned shares of the layers. Facts: "mix", these shares, that of
    the embeddings first; "count", "skipped", the test examples that were read, and those that were too long for the model.

    Attributes:
        projection: width of the projected vectors, as the paper.
        hidden: width of the MLP's hidden layer.
        dropout: on the hidden layer.
        epochs: over the training examples.
        batch_size: examples of a step, as the paper.
        learning_rate: of Adam; the paper's 1e-4 is for 100,000s of examples, with a dev file that says when to stop.
        seed: of the weights, the order of the examples and dropout.

    Example:
        examples = [SpanExample("a good film", ((2, 6), (7, 11)), ("amod",)), SpanExample("the film", ((0, 3), (4, 8)), ("det",))]
        table = Edges(projection=4, hidden=4, epochs=1).run(LayerReader(encoder, tokenizer), [examples * 4, examples])
        table.facts["mix"]
    """

    projection: Annotated[int, Range(at_least=1)] = 256
    hidden: Annotated[int, Range(at_least=1)] = 256
    dropout: Annotated[float, Range(at_least=0, below=1)] = 0.2
    epochs: Annotated[int, Range(at_least=1)] = 10
    batch_size: Annotated[int, Range(at_least=1)] = 32
    learning_rate: Annotated[float, Range(above=0)] = 1e-3
    seed: Annotated[int, Range(at_least=0)] = 0

    name, title, asks = "edges", "labels of spans", "layers"

    def read(self, train, test, most=None):
        """For each of two files what `read_spans` returns."""
        return [read_spans(path, most) for path in (train, test)]

    def run(self, reader, parts, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            ConfigError: a model that does not give the outputs of its layers.
            DataError: examples with one span and with two, no example that fits into the model's positions, or one label
                only.
        """
        train, test = parts
        examples = [*train, *test]
        if len({len(example.spans) for example in examples}) != 1:
            raise DataError("some examples have one span, others two; all must have the same number")
        labels = sorted({label for example in train for label in example.labels})
        if len(labels) < 2:
            raise DataError("the training examples have one label; a probe needs at least two")
        inputs, used = _span_inputs(reader, examples, progress)
        border = int(np.searchsorted(used, len(train)))
        if border in (0, len(used)):
            raise DataError("no example fits into the model's positions; give others to train on and to test on")
        targets = np.array([[label in examples[i].labels for label in labels] for i in used], np.float32)
        # A label that the training examples lack is missed by every probe.
        unknown = sum(len(set(examples[i].labels) - set(labels)) for i in used[border:])
        # A mix of the same layer twice is that layer.
        only_embeddings = tuple(x[:, [0, 0]] if x.ndim == 4 else x for x in inputs)
        results = []
        for vectors in (inputs, only_embeddings):
            probe = self._train(tuple(x[:border] for x in vectors), targets[:border])
            starts = range(border, len(used), self.batch_size)
            logits = [ops.convert_to_numpy(probe(tuple(x[i : i + self.batch_size] for x in vectors))) for i in starts]
            results.append((micro_f1(np.concatenate(logits) > 0, targets[border:], unknown), probe))
        frequent = np.zeros_like(targets[border:])
        frequent[:, targets[:border].sum(axis=0).argmax()] = 1
        majority = micro_f1(frequent > 0, targets[border:], unknown)
        mix = [float(x) for x in ops.convert_to_numpy(ops.softmax(results[0][1].mix.weight.value))]
        count = len(used) - border
        shares = ", ".join(f"{i}: {share:.2f}" for i, share in enumerate(mix))
        note = (
            f"Micro F1 on {count} examples, {len(test) - count} left out (too long). mean layer: by the shares {shares}"
        )
        mean_layer = float(np.dot(mix, np.arange(len(mix))))
        rows = [("mix of all layers", [results[0][0], majority, None, mean_layer])]
        rows.append(("embeddings alone", [results[1][0], majority, None, 0.0]))
        facts = {"mix": mix, "count": count, "skipped": len(test) - count}
        return ProbeTable(self.title, ["F1", "majority", "random", "mean layer"], rows, note, facts=facts)

    def _train(self, inputs, targets):
        """The `EdgeProbe` of inputs [N, ...] and float32 [N, labels]."""
        keras.utils.set_random_seed(self.seed)
        probe = EdgeProbe(targets.shape[1], inputs[0].shape[1], len(inputs) // 2, self)
        steps = self.epochs * -(-len(targets) // self.batch_size)
        schedule = keras.optimizers.schedules.PolynomialDecay(self.learning_rate, steps, end_learning_rate=0.0)
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        probe.compile(keras.optimizers.Adam(schedule), loss, jit_compile=False)
        probe.fit(inputs, targets, batch_size=self.batch_size, epochs=self.epochs, verbose=0)
        return probe


def micro_f1(predicted, true, missed=0):
    """2 TP / (2 TP + FP + FN) over all labels of all examples; `missed` are further true labels that were not predicted.

    Example:
        micro_f1(np.array([[True, True]]), np.array([[1, 0]]))  # 2 / 3
    """
    predicted, true = predicted.astype(bool), true.astype(bool)
    right = int((predicted & true).sum())
    return 2 * right / max(1, int(predicted.sum()) + int(true.sum()) + missed)


def _span_inputs(reader, examples, progress):
    """(for each span its vectors float32 [N, layers, S, H] and float32 [N, S], 1 for its tokens; the numbers of the examples)."""
    sequences, places, used = [], [], []
    parts = tokenize_with_offsets(reader.tokenizer, [example.text for example in examples])
    for number, (example, ids, starts, ends) in enumerate(zip(examples, *(part.to_list() for part in parts))):
        inside = [
            [i for i, (a, b) in enumerate(zip(starts, ends)) if a < end and b > start] for start, end in example.spans
        ]
        if len(ids) <= reader.room and all(inside):
            sequences.append(ids)
            places.append(inside)
            used.append(number)
    vectors_of = [None] * len(used)
    for index, states in reader.hidden_states(sequences, progress):
        vectors_of[index] = [states[:, inside] for inside in places[index]]
    inputs = []
    for of_span in zip(*vectors_of):
        longest = max(2, *(states.shape[1] for states in of_span))
        vectors = np.zeros((len(of_span), of_span[0].shape[0], longest, of_span[0].shape[2]), np.float32)
        real = np.zeros((len(of_span), longest), np.float32)
        for row, states in enumerate(of_span):
            vectors[row, :, : states.shape[1]], real[row, : states.shape[1]] = states, 1.0
        inputs += [vectors, real]
    return tuple(inputs), np.array(used, int)
