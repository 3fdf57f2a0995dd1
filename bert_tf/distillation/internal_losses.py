"""Terms of what is inside of the models: hidden states, attention, relations between tokens.

Each is computed as its original computes it. Where an original takes a mean over padding too (TinyBERT), so does the
term.
"""

import keras
from keras import ops

from bert_tf.backend import TruncatedNormal
from bert_tf.distillation.layer_maps import check_layers, uniform_layers
from bert_tf.distillation.losses import (
    cosine_distances,
    divergences_of_rows,
    normalize,
    relation_scores,
    squared_errors,
)
from bert_tf.distillation.term_loss import TermLoss
from bert_tf.errors import ConfigError

#: TinyBERT sets scores at or below this to 0 before it compares them: those of padding.
MASKED_SCORE = -1e2


class HiddenCosine(TermLoss):
    """1 - cos of the last hidden states, mean over tokens without padding (DistilBERT, `distiller.py`)."""

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        check_same("hidden_cosine", "hidden_size", student, teacher)

    def weight(self, batch):
        return ops.sum(batch.tokens)

    def sum(self, student, teacher, batch):
        s, t = (ops.cast(outputs.internals.hidden_states[-1], "float32") for outputs in (student, teacher))
        return ops.sum(cosine_distances(s, t) * batch.tokens)


class PerRow(TermLoss):
    """Base of the terms with one value for each row of a batch, divided by the number of rows.

    The value is the sum over `pairs`, which are layers of the student and of the teacher, divided by `divisor`.
    """

    pairs, divisor = (), 1

    def weight(self, batch):
        return ops.sum(batch.rows)

    def sum(self, student, teacher, batch):
        rows = sum(self.of_layers(student.internals, i, teacher.internals, j) for i, j in self.pairs)
        return ops.sum(rows / self.divisor * batch.rows)

    def of_layers(self, student, i, teacher, j):
        """float32 [B], of layer i of the student's internals and layer j of the teacher's."""
        raise NotImplementedError(f"{type(self).__name__} must define of_layers")


class HiddenStates(PerRow):
    """TinyBERT's loss of embeddings and hidden states (equations 8 and 9; `task_distill.py`, `general_distill.py`).

    The sum over layers of the mean over positions and H' of (W s + b - t)^2. As in the authors' code, one projection
    serves all layers, and padding is compared, too.
    """

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        layers = layer_map("hidden_states", settings.layers, student, teacher)
        self.pairs = [(0, 0), *((i + 1, layer + 1) for i, layer in enumerate(layers))]
        options = {"kernel_initializer": TruncatedNormal(stddev=student.initializer_range), "dtype": "float32"}
        self.projection = keras.layers.Dense(teacher.hidden_size, name="hidden_states_projection", **options)
        self.projection.build((None, None, student.hidden_size))
        self.layers = [self.projection]

    def of_layers(self, student, i, teacher, j):
        expected = ops.cast(teacher.hidden_states[j], "float32")
        projected = self.projection(ops.cast(student.hidden_states[i], "float32"))
        return ops.mean(squared_errors(projected, expected), axis=1) / expected.shape[-1]


class AttentionScores(PerRow):
    """TinyBERT's loss of attention (equation 7): the sum over layers of the mean over heads, queries and keys.

    Of the scores before the softmax, those of padded keys set to 0 in both models. Padded queries are compared, too.
    """

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        self.pairs = list(enumerate(layer_map("attention_scores", settings.layers, student, teacher)))
        check_same("attention_scores", "num_heads", student, teacher)

    def of_layers(self, student, i, teacher, j):
        s, t = (ops.where(s <= MASKED_SCORE, 0.0, s) for s in (student.scores[i], teacher.scores[j]))
        return ops.mean(ops.square(s - t), axis=(1, 2, 3))


class Patient(PerRow):
    """Patient knowledge distillation's third term: the mean over layers and H of the squared error of unit vectors.

    Sun et al. 2019, section 3.2, is a sum; the authors' code (`distill_util.py`) takes the mean, and so does this.
    """

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        check_same("patient", "hidden_size", student, teacher)
        self.pairs = list(enumerate(_patient_layers(settings.layers, student.num_layers, teacher.num_layers)))
        self.divisor = len(self.pairs)

    def of_layers(self, student, i, teacher, j):
        pair = student.block_outputs[i][:, 0], teacher.block_outputs[j][:, 0]
        s, t = (normalize(ops.cast(x, "float32")) for x in pair)
        return squared_errors(s, t) / t.shape[-1]


class Relations(TermLoss):
    """Base of MiniLM's terms: a value for each token, divided by the number of tokens without padding."""

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        layers, layer = teacher.num_layers, settings.teacher_layer
        self.last = student.num_layers - 1  # not -1: with task.decoder.pair_order=both the swapped pairs come after it
        self.layer = layers - 1 if layer is None else layer
        if self.layer >= layers:
            raise ConfigError(f"teacher_layer={layer}, but the teacher has the layers 0 to {layers - 1}")

    def weight(self, batch):
        return ops.sum(batch.tokens)

    def relations(self, name, heads, student, teacher, tokens):
        """The divergence of the relations between `queries`, `keys` or `values`, float32 [B, S]."""
        s, t = getattr(student.internals, name)[self.last], getattr(teacher.internals, name)[self.layer]
        scores = (relation_scores(x, heads, tokens) for x in (s, t))
        return divergences_of_rows(*scores, tokens)


class MiniLM(Relations):
    """MiniLM: the attention of the last layer, and the relation of its values (Wang et al. 2020, section 3)."""

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        check_same("minilm", "num_heads", student, teacher)
        self.heads = teacher.num_heads

    def sum(self, student, teacher, batch):
        scores = student.internals.scores[self.last], teacher.internals.scores[self.layer]
        attention = divergences_of_rows(*scores, batch.tokens)
        return ops.sum(attention + self.relations("values", self.heads, student, teacher, batch.tokens))


class MiniLM2(Relations):
    """MiniLMv2: relations of queries, keys and values in heads that both models share (Wang et al. 2021, section 3)."""

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        for config in (student, teacher):
            if config.hidden_size % settings.relation_heads:
                raise ConfigError(
                    f"terms.minilm2.relation_heads={settings.relation_heads} does not divide hidden_size="
                    f"{config.hidden_size}; set it to a number that divides the widths of both models"
                )

    def sum(self, student, teacher, batch):
        settings, total = self.settings, 0.0
        for name, factor in (("queries", settings.query), ("keys", settings.key), ("values", settings.value)):
            if factor:
                total += factor * self.relations(name, settings.relation_heads, student, teacher, batch.tokens)
        return ops.sum(total)


def layer_map(term, layers, student, teacher):
    """The teacher's layer for each layer of the student, from 0; by default `uniform_layers`."""
    if layers is None:
        return uniform_layers(student.num_layers, teacher.num_layers)
    check_layers(layers, student.num_layers, teacher.num_layers, f"terms.{term}.layers")
    return layers


def check_same(term, setting, student, teacher):
    """Refuses a student that differs from the teacher in a setting; raises ConfigError."""
    of_student, of_teacher = getattr(student, setting), getattr(teacher, setting)
    if of_student != of_teacher:
        raise ConfigError(
            f"terms.{term} compares models of one {setting}, and the student has {of_student}, the teacher {of_teacher}; set "
            f"student.model.{setting}={of_teacher} (model.{setting}={of_teacher} for pretraining), or remove the term"
        )


def _patient_layers(layers, student, teacher):
    compared = student - 1
    if compared < 1:
        raise ConfigError("terms.patient compares all layers but the last, and the student has one; remove the term")
    if layers == "skip":
        return uniform_layers(student, teacher)[:-1]
    if layers == "last":
        layers = tuple(range(teacher - student, teacher - 1))
    check_layers(layers, compared, teacher, "terms.patient.layers")
    return layers
