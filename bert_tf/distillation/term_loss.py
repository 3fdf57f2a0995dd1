"""The base of the classes that compute a term of the loss."""

import dataclasses


@dataclasses.dataclass
class ModelOutputs:
    """What the student or the teacher computed from a batch.

    Attributes:
        outputs: float32 [..., C], the logits, or the number of a regression (C is 1); None where no term reads it.
        internals: `bert_tf.layers.internals.Internals`; None where no term reads it.
    """

    outputs: object = None
    internals: object = None


@dataclasses.dataclass
class Batch:
    """The weights of a batch, which depend on the data alone.

    Attributes:
        predictions: float32 of the shape of the outputs without their last axis: 1 where a prediction counts, else 0.
        rows: float32 [B], 0 for a row that fills a batch up.
        tokens: float32 [B, S], 1 at real tokens.
        step: how many updates were finished before: an int32 scalar.
    """

    predictions: object
    rows: object
    tokens: object
    step: object = 0


class TermLoss:
    """A term of the loss, without its weight.

    Args:
        settings: the `TermConfig`.
        student, teacher: the configurations of the two backbones.

    Attributes:
        layers: Keras layers whose variables are trained with the student, and are not part of it.

    Example:
        class LogitDifference(TermLoss):
            def weight(self, batch):
                return keras.ops.sum(batch.predictions)

            def sum(self, student, teacher, batch):
                differences = keras.ops.abs(student.outputs - teacher.outputs)
                return keras.ops.sum(keras.ops.max(differences, axis=-1) * batch.predictions)
    """

    def __init__(self, settings, student, teacher):
        self.settings, self.layers = settings, []

    def weight(self, batch):
        """What the sum is divided by, over all replicas: a float32 scalar of `Batch` alone."""
        raise NotImplementedError(f"{type(self).__name__} must define weight")

    def learning_rates(self, model):
        """Factors of the learning rate of single variables of a `Distiller`: `rate_factors` of `ScaledUpdates`."""
        return {}

    def sum(self, student, teacher, batch):
        """The undivided term, a float32 scalar, of two `ModelOutputs` and a `Batch`."""
        raise NotImplementedError(f"{type(self).__name__} must define sum")
