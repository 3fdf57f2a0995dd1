"""Terms of what is predicted: probabilities, logits, numbers."""

from keras import ops

from bert_tf.distillation.losses import soft_cross_entropies, squared_errors
from bert_tf.distillation.term_loss import TermLoss
from bert_tf.errors import ConfigError


class OutputLoss(TermLoss):
    """Base of the terms with one value for each prediction, divided by the number of predictions."""

    def weight(self, batch):
        return ops.sum(batch.predictions)

    def sum(self, student, teacher, batch):
        values = self.values(student.outputs, teacher.outputs)
        if self.settings.mean == "classes":
            values = values / student.outputs.shape[-1]
        return ops.sum(values * batch.predictions)

    def values(self, student, teacher):
        """float32 [..., C] twice -> [...]."""
        raise NotImplementedError(f"{type(self).__name__} must define values")


class SoftLabels(OutputLoss):
    """See `SoftLabelsConfig`."""

    def values(self, student, teacher):
        if student.shape[-1] == 1:
            raise ConfigError("terms.soft_labels needs classes, and the task predicts a number; use squared_error")
        temperature = self.settings.temperature
        entropies = soft_cross_entropies(student, teacher, temperature, self.settings.divergence)
        return entropies * (temperature**2 if self.settings.temperature_squared else 1.0)


class SquaredError(OutputLoss):
    """See `SquaredErrorConfig`."""

    def values(self, student, teacher):
        return squared_errors(student, teacher) / self.settings.temperature**2
