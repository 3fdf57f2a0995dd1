"""One step of training or evaluation, in replica context, and many of them in one call, in cross-replica context."""

import contextlib
import threading
from typing import Any

import tensorflow as tf

from bert_tf.backend.fitting import ADDED, Fitting, without_tuple
from bert_tf.backend.randomness import step_randomness
from bert_tf.backend.tensorflow.loops import use_cpu_kernels
from bert_tf.backend.tensorflow.randomness import fold_in

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own

# As in Keras's own steps: a model has no Python that AutoGraph would have to translate, which takes
# longer than all the rest of tracing.
_as_it_is = tf.autograph.experimental.do_not_convert


class Steps(Fitting):
    """The steps of a `Trainer`."""

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update with a batch, as a dict of features; under a strategy with one replica's part of it.

        A subclass may override it as Keras's guide "Customizing what happens in fit()" shows: it calls this one, or
        `compute_loss` under a tape of its own and `optimizer.apply`, and returns a dict of what is logged. Such a
        gradient of its own is summed over replicas and clipped by the optimizer, as in Keras. What `compile` says of
        micro-batches, recomputation and XLA belongs to this method.

        Returns:
            A dict of float32 scalars: the losses and metrics of the global batch, and `gradient_norm`. `fit` logs the
            exact means of the first over the epoch.
        """
        sums, norm, bad = self._update(data)
        return self._noted(sums, bad, {"gradient_norm": norm})

    def test_step(self, data: Any) -> dict[str, Any]:
        """The losses and metrics of a batch without an update, of this replica alone; overridden as `train_step`."""
        features = without_tuple(data)
        losses, metrics = self._loss_sums(features, training=False)
        sums = self._pair_with(self._stack(losses, metrics), self._loss_weights(features))
        return self._noted(sums, tf.constant(-1), {})

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The loss of a dict of features `x`, of this replica alone, for a `train_step` of a subclass.

        The other arguments are Keras's, and are not used: labels and weights are among the features.
        """
        features = without_tuple(x)
        losses, _ = self._loss_sums(features, training=training)
        return self._total(losses, self._loss_weights(features))

    def _noted(self, sums, bad, extra):
        """The logs of a step, whose exact sums are put down for `_repeated`."""
        losses, metrics = self._names
        ratios = tf.unstack(tf.math.divide_no_nan(sums[::2], sums[1::2]))
        logs = {"loss": tf.add_n([self._coefficient(n) * r for n, r in zip(losses, ratios)])}
        logs |= {f"{n}_loss": r for n, r in zip(losses, ratios)} | dict(zip(metrics, ratios[len(losses) :])) | extra
        getattr(_active, "noted", []).append((sums, bad, extra, logs))
        return logs

    def _update(self, features):
        """Forward, backward and update on one replica's part of the batch.

        Returns:
            (sums, norm, bad): float32 [2 * (losses + metrics)] pairs of (sum, weight) over all
            replicas; the gradient's global norm; the index of the first tensor that is not
            finite, -1 for none.
        """
        features = without_tuple(features)
        local = self._loss_weights(features)
        weights = dict(zip(local, tf.unstack(_sum_over_replicas(tf.stack(list(local.values()))))))
        seed = self._step_seed()
        sums, gradients = None, None
        for micro, part in enumerate(_split(features, self._accumulation_steps)):
            part_seed = fold_in(seed, micro)
            # One after the other, or the executor would hold every micro-batch's activations.
            with tf.control_dependencies([] if sums is None else [sums]):
                part_sums, part_gradients = self._forward_backward(
                    {k: tf.identity(v) for k, v in part.items()}, weights, part_seed
                )
            sums = part_sums if sums is None else sums + part_sums
            gradients = part_gradients if gradients is None else [a + b for a, b in zip(gradients, part_gradients)]
        sums = _sum_over_replicas(self._pair_with(sums, local))
        gradients = _sum_over_replicas(gradients)
        squares = tf.stack([2 * tf.cast(tf.nn.l2_loss(g), tf.float32) for g in gradients])
        finite = tf.math.is_finite(tf.concat([sums, squares], 0))
        bad = tf.where(tf.reduce_all(finite), -1, tf.argmin(tf.cast(finite, tf.int32), output_type=tf.int32))
        norm = tf.sqrt(tf.reduce_sum(squares))
        if self._scales_loss:
            scale = tf.identity(self.optimizer.dynamic_scale.value)  # before this update changes it
            norm /= scale
            # float16 overflows now and then, on whichever replica: the sums show it to all of them, the
            # optimizer leaves the update out and halves the scale. With no scale left it is an error.
            sums = tf.where(tf.reduce_all(tf.math.is_finite(sums)), sums, tf.zeros_like(sums))
            bad = tf.where(scale > 1, -1, bad)
        if self._clip_norm:
            factor = self._clip_norm / tf.maximum(norm, self._clip_norm)
            gradients = [g * tf.cast(factor, g.dtype) for g in gradients]
        with _reduced(self.optimizer):
            self.optimizer.apply_gradients(zip(gradients, self._variables_with_gradient()))
        return sums, norm, bad

    def _step_seed(self):
        """int32 [2]: of the masks of this update on this replica."""
        seed = tf.stack([tf.cast(self.optimizer.iterations.value, tf.int32), self._seed])
        if self._scales_loss:  # a step left out does not count; the next one has another scale
            seed = fold_in(seed, tf.bitcast(self.optimizer.dynamic_scale.value, tf.int32))
        return fold_in(seed, tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32))

    def _loss_weights(self, features):
        return self.loss_weights(features) | {ADDED: tf.cast(_rows(features), tf.float32)}

    def _loss_sums(self, features, training):
        """`loss_sums`, and with it what layers have added to the loss: as in Keras, its mean over the rows."""
        self._clear_losses()  # of another graph
        losses, metrics = self.loss_sums(features, training=training)
        added = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in self.losses]
        self._clear_losses()
        if added:
            losses = losses | {ADDED: tf.add_n(added) * tf.cast(_rows(features), tf.float32)}
        return losses, metrics

    def _gradients(self, features, weights, seed):
        with use_cpu_kernels(self._kernels):
            randomness = step_randomness(seed, self, recomputes=self._remat)
            with tf.GradientTape() as tape, randomness:
                losses, metrics = self._loss_sums(features, training=True)
                total = self._total(losses, weights)
                if self._scales_loss:
                    total = self.optimizer.scale_loss(total)
            gradients = tape.gradient(total, self.trainable_variables)
        gradients = [None if gradient is None else _dense(gradient) for gradient in gradients]
        # Numbers, because Keras would count variables in an attribute as the model's a second time.
        self._with_gradient = [i for i, g in enumerate(gradients) if g is not None]
        return self._stack(losses, metrics), [gradients[i] for i in self._with_gradient]

    def _variables_with_gradient(self):
        return [self.trainable_variables[i] for i in self._with_gradient]

    def _total(self, losses, weights):
        return tf.add_n([tf.math.divide_no_nan(losses[n], weights[n]) * self._coefficient(n) for n in losses])

    def _stack(self, losses, metrics):
        """[losses, then (sum, weight) of each metric], and remembers the names while tracing."""
        self._names = (list(losses), list(metrics))
        return tf.stack(list(losses.values()) + [tf.cast(x, tf.float32) for m in metrics.values() for x in m])

    def _pair_with(self, sums, weights):
        """Puts each loss's weight beside its sum: [(sum, weight) of losses, of metrics]."""
        losses = self._names[0]
        pairs = [x for i, n in enumerate(losses) for x in (sums[i], weights[n])]
        return tf.concat([tf.stack(pairs), sums[len(losses) :]], 0)

    def _repeated(self, step, training):
        """A graph function of up to `steps_per_execution` steps, as many as there is data for."""
        strategy, repetitions = self.distribute_strategy, int(self.steps_per_execution)
        overridden = training and type(self).train_step is not Steps.train_step

        def one_replica(features):
            features = without_tuple(features)
            before, _active.noted = getattr(_active, "noted", []), []
            if overridden:  # its own passes have the kernels and the masks of the base class
                with use_cpu_kernels(self._kernels), step_randomness(self._step_seed(), self):
                    logs = step(features)
            else:
                logs = step(features)
            noted, _active.noted = _active.noted, before
            known = {id(value) for *_, own in noted for value in own.values()}
            logs = {name: tf.cast(value, tf.float32) for name, value in logs.items() if id(value) not in known}
            if not noted:
                self._names = ([], [])
                return tf.zeros([0]), tf.constant(-1), {}, logs
            sums, bad, extra, _ = noted[-1]
            for more, other, *_ in noted[:-1]:
                sums, bad = sums + more, tf.where(other >= 0, other, bad)
            return sums, bad, extra, logs

        # Nothing may be updated before the data is known to exist, or at the end of a finite dataset the step counter
        # would count an update that never was.
        one_replica = _after_data(one_replica) if training else _as_it_is(one_replica)

        def once(features):
            *results, logs = strategy.run(one_replica, args=(features,))
            logs = {
                name: strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None) for name, value in logs.items()
            }
            sums, bad, extra = tf.nest.map_structure(lambda r: strategy.experimental_local_results(r)[0], results)
            if not training:  # those of a train step are of all replicas
                sums = strategy.reduce(tf.distribute.ReduceOp.SUM, results[0], axis=None)
            return sums, bad, extra, logs

        @tf.function(reduce_retracing=True)
        def steps(iterator):
            sums, bad, extra, logs = once(next(iterator))
            first_bad = tf.where(bad >= 0, 0, -1)
            if repetitions == 1:  # a loop of no rounds would be traced, and compiled, all the same
                return sums, extra, logs, bad, 1 - first_bad
            done = 1
            for i in tf.range(1, repetitions):
                following = iterator.get_next_as_optional()
                if following.has_value():
                    more, new, extra, logs = once(following.get_value())
                    sums += more
                    first_bad = tf.where((bad < 0) & (new >= 0), i, first_bad)
                    bad = tf.where(bad < 0, new, bad)
                    done += 1
            return sums, extra, logs, bad, done - first_bad

        return steps


def _dense(gradient):
    """A gradient that can be summed and clipped with the rest: not of looked-up rows, nor in half precision."""
    gradient = tf.convert_to_tensor(gradient)
    return tf.cast(gradient, tf.float32) if gradient.dtype.size == 2 else gradient


def _after_data(step):
    @_as_it_is
    def run(features):
        tensors = tf.nest.flatten(features, expand_composites=True)
        with tf.control_dependencies([t for t in tensors if tf.is_tensor(t)]):
            return step(features)

    return run


def _sum_over_replicas(tensors):
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return tensors
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def _split(features, parts):
    """Cuts every feature into `parts` along the batch, the first parts one longer if uneven."""
    if parts == 1:
        return [features]
    size = _rows(features)
    bounds = [size * i // parts for i in range(parts + 1)]
    static = next(iter(features.values())).shape[0]
    if static is not None:  # XLA needs to see the sizes
        bounds = [static * i // parts for i in range(parts + 1)]
    return [{k: v[bounds[i] : bounds[i + 1]] for k, v in features.items()} for i in range(parts)]


def _rows(features):
    """The number of rows of a batch."""
    return tf.shape(next(iter(features.values())))[0]


def take_reduced_gradients(optimizer: Any) -> None:
    """Makes `optimizer` neither sum nor clip gradients in a block of `_reduced`."""
    # On the object: the optimizer that the caller holds is the one that trains, and it is saved as what it is.
    if hasattr(optimizer, "_reduced_blocks"):
        return
    optimizer._reduced_blocks = 0
    for name in ("_clip_gradients", "_all_reduce_sum_gradients"):

        def method(gradients, original=getattr(optimizer, name)):
            return list(gradients) if optimizer._reduced_blocks else original(gradients)

        setattr(optimizer, name, method)


@contextlib.contextmanager
def _reduced(optimizer):
    """Gradients that `optimizer` applies in this block are summed over replicas and clipped."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner._reduced_blocks += 1  # a count, because replicas are traced in threads that take turns
    try:
        yield
    finally:
        inner._reduced_blocks -= 1
