"""MobileBERT's progressive knowledge transfer: the layers learn one after the other."""

import keras
from keras import ops

from bert_tf.distillation.internal_losses import PerRow, check_same, layer_map
from bert_tf.distillation.losses import squared_errors
from bert_tf.training.depth import depths

_EPSILON = 1e-12  # of the layer norm of TensorFlow 1, `contrib.layers.layer_norm`


class Progressive(PerRow):
    """The feature maps and the attention of one layer at a time (Sun et al. 2020, sections 3.4 and 3.5).

    In phase l, of `phase_steps` updates, the loss is that of layer l alone:

        feature_maps * mean((LN(s) - LN(t))^2) + mean * mean((mu(s) - mu(t))^2) + variance * mean(|var(s) - var(t)|)
            + attention * mean(-sum_k p_k log q_k)

    divided by the number of layers, where LN is a layer norm without scale and offset, mu and var are over H, and p and
    q are the attention of teacher and student. As in the authors' `run_pretraining.py`, padding counts, too. There the
    mean and the variance are compared with those of all layers of the teacher at once, through a variable of nearly the
    same name; here they are those of the layer, as the paper has it.

    The learning rate of layer l is 0 before its phase, `layer_rate` times the schedule's in it, and `earlier_rate`
    times in later phases (`distill_util.py`); each phase begins with a warm-up over its first tenth. Embeddings, pooler
    and heads are not trained.
    """

    def __init__(self, settings, student, teacher):
        super().__init__(settings, student, teacher)
        check_same("progressive", "hidden_size", student, teacher)
        check_same("progressive", "num_heads", student, teacher)
        self.pairs = list(enumerate(layer_map("progressive", settings.layers, student, teacher)))

    def sum(self, student, teacher, batch):
        phase, total = _phase(batch.step, self.settings.phase_steps, len(self.pairs)), 0.0
        for i, j in self.pairs:
            rows = self.of_layers(student.internals, i, teacher.internals, j)
            total += ops.cast(ops.equal(phase, i), "float32") * ops.sum(rows * batch.rows)
        return total / len(self.pairs)

    def learning_rates(self, model):
        depth, _ = depths(model, "terms.progressive")
        settings, layers = self.settings, len(self.pairs)
        rates = settings.phase_steps, settings.layer_rate, settings.earlier_rate
        return {path: LayerRate(d - 1, layers, *rates) for path, d in depth.items()}

    def of_layers(self, student, i, teacher, j):
        settings = self.settings
        s, t = (ops.cast(x, "float32") for x in (student.block_outputs[i], teacher.block_outputs[j]))
        (mu, var), (mu_t, var_t) = (ops.moments(x, axes=-1, keepdims=True) for x in (s, t))
        normal, normal_t = (s - mu) * ops.rsqrt(var + _EPSILON), (t - mu_t) * ops.rsqrt(var_t + _EPSILON)
        total = settings.feature_maps * ops.mean(squared_errors(normal, normal_t), axis=1) / t.shape[-1]
        total += settings.mean * ops.mean(ops.square(mu - mu_t), axis=(1, 2))
        total += settings.variance * ops.mean(ops.abs(var - var_t), axis=(1, 2))
        p, q_log = ops.softmax(teacher.scores[j]), ops.log_softmax(student.scores[i])
        return total - settings.attention * ops.mean(ops.sum(p * q_log, axis=-1), axis=(1, 2))


@keras.saving.register_keras_serializable("bert_tf")
class LayerRate(keras.optimizers.schedules.LearningRateSchedule):
    """The factor of the learning rate of a layer that is trained by `Progressive`.

    Args:
        layer: its number; -1, or at least `num_layers`, outside of the layers.
        num_layers: those of the student.
        phase_steps, layer_rate, earlier_rate: of the settings.

    Example:
        LayerRate(1, 2, phase_steps=10, layer_rate=1.0, earlier_rate=0.1)(10)  # 0.0, where the warm-up begins
    """

    def __init__(self, layer, num_layers, phase_steps, layer_rate, earlier_rate):
        self.layer, self.num_layers, self.phase_steps = layer, num_layers, phase_steps
        self.layer_rate, self.earlier_rate = layer_rate, earlier_rate

    def __call__(self, step):
        """The factor of the update that follows `step` finished ones; float32 scalar."""
        if not 0 <= self.layer < self.num_layers:
            return ops.zeros(())
        phase = _phase(step, self.phase_steps, self.num_layers)
        done = ops.cast(step, "float32") / self.phase_steps - ops.cast(phase, "float32")
        of_phase = ops.minimum(0.9 + 0.1 * ops.sqrt(ops.maximum(1.0 - done, 0.0)), 10.0 * done)
        factor = ops.where(ops.equal(phase, self.layer), self.layer_rate, self.earlier_rate)
        return of_phase * ops.where(phase < self.layer, 0.0, factor)

    def get_config(self):
        names = ("layer", "num_layers", "phase_steps", "layer_rate", "earlier_rate")
        return {name: getattr(self, name) for name in names}


def _phase(step, phase_steps, num_layers):
    """The layer that is learned in the update that follows `step` finished ones; after all phases, the last layer."""
    return ops.minimum(ops.cast(step, "int32") // phase_steps, num_layers - 1)
