"""Keras 3's `fit` made exact under tf.distribute.

Stock Keras clips each replica's gradients before they are summed, averages weighted losses per
replica, and cannot accumulate, or run several steps per call, under a strategy. This class
replaces the part of the trainer that faces the strategy; callbacks, epochs and progress bars
remain Keras's own.
"""

import contextlib
import threading

import keras
import numpy as np
import tensorflow as tf

from bert_tf.backend.loops import compiles_for_cpus, use_cpu_kernels
from bert_tf.backend.randomness import fold_in, step_randomness
from bert_tf.backend.tpu import check_xla, is_tpu
from bert_tf.errors import ConfigError

#: Arguments of Keras's `compile` that this one refuses, and what to do instead.
_UNSUPPORTED_COMPILE_ARGUMENTS = {
    "loss": "which has its own loss; leave it out",
    "loss_weights": "whose losses have the factors of its attribute loss_coefficients; leave it out",
    "metrics": "whose metrics are those of its loss_sums; leave it out",
    "weighted_metrics": "whose metrics are those of its loss_sums; leave it out",
    "run_eagerly": "which trains in a graph; call tf.config.run_functions_eagerly(True) instead",
}

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own

#: The name of the loss that layers add (`add_loss`, regularizers); its weight is the number of rows.
_ADDED = "added"

_ONE_DICT = "a batch must be one dict of features with the labels and weights inside, not (x, y) or sample_weight"

# As in Keras's own steps: a model has no Python that AutoGraph would have to translate, which takes
# longer than all the rest of tracing.
_as_it_is = tf.autograph.experimental.do_not_convert


class TensorFlowTrainer:
    """Mixed into `TrainableModel`, before `keras.Model`."""

    def compile(
        self,
        optimizer="adam",
        *,
        accumulation_steps=1,
        steps_per_execution=1,
        remat=False,
        xla=None,
        cpu_kernels=True,
        seed=0,
        **kwargs,
    ):
        """Sets how the model is trained.

        Args:
            optimizer: a Keras optimizer or its name; it must not clip per variable. Its global
                clip is applied to the gradient of the whole global batch.
            accumulation_steps: micro-batches that a replica's batch is cut into, computed one after the other
                before one update; the numbers are those of the whole batch.
            steps_per_execution: the most updates per call of the train function. `fit` makes fewer of them where
                `steps_per_epoch` or `validation_steps` is not a multiple. "auto": 1 on CPUs, where a call costs nothing
                beside an update, and 16 elsewhere.
            remat: gradient checkpointing: the backward pass computes each transformer layer again. The same numbers
                in less memory and more time; tests/benchmarks/remat.py measures both. LSTMs have no such layers, and
                are not changed.
            xla: compile forward and backward pass with XLA. None: all of it on GPUs; on CPUs, where that would be
                slower, only chains of element-wise operations. Never on a TPU, which compiles the whole step itself.
            cpu_kernels: False computes every layer as Keras does (`bert_tf.backend.cpu_kernels`): slower on a
                CPU, the same numbers but for rounding.
            seed: of the dropout masks.
            kwargs: `jit_compile`, Keras's name of `xla`, whose default "auto" is None here; `auto_scale_loss`, as in Keras.

        Raises:
            ConfigError: a setting that cannot be right.
        """
        compiled = kwargs.pop("jit_compile", "auto")
        if compiled not in ("auto", None):
            if xla not in (bool(compiled), None):
                raise ConfigError(f"compile(xla={xla}, jit_compile={compiled}) disagree; give one of them")
            xla = bool(compiled)
        for name, instead in _UNSUPPORTED_COMPILE_ARGUMENTS.items():
            if kwargs.pop(name, None):
                raise ConfigError(f"compile({name}=...) would have no effect on {type(self).__name__}, {instead}")
        # Not `jit_compile`: XLA compiles forward and backward pass alone, for it cannot hold the collectives.
        super().compile(optimizer=optimizer, jit_compile=False, **kwargs)
        # Under float16 Keras has put the optimizer into one that scales the loss.
        inner = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        if inner.clipnorm or inner.clipvalue:
            raise ConfigError("clipnorm and clipvalue clip each variable alone; use global_clipnorm")
        if inner.gradient_accumulation_steps:
            raise ConfigError(
                "give accumulation_steps to compile() instead of gradient_accumulation_steps to the optimizer"
            )
        if "float16" in {v.dtype for v in self.trainable_variables}:
            raise ConfigError(
                f"{type(self).__name__} has weights in float16, in which small updates are lost and sums overflow; make "
                "it with the dtype policy 'mixed_float16', which computes in float16 and keeps the weights in float32"
            )
        _take_reduced_gradients(inner)
        self._options = {"accumulation_steps": accumulation_steps, "steps_per_execution": steps_per_execution} | kwargs
        self._options |= {"remat": remat, "xla": xla, "cpu_kernels": cpu_kernels, "seed": seed}
        self._clip_norm, self._scales_loss = inner.global_clipnorm, inner is not self.optimizer
        self._accumulation_steps = accumulation_steps
        self._remat = remat
        self._seed = seed
        self._names = self._totals = None
        self._other_logs = {}  # what an overridden step returned last, beside the means
        check_xla(self.distribute_strategy, xla)
        tpu = is_tpu(self.distribute_strategy)
        accelerated = tpu or bool(tf.config.list_logical_devices("GPU"))
        self._most_steps = (16 if accelerated else 1) if steps_per_execution == "auto" else int(steps_per_execution)
        self.steps_per_execution = self._most_steps
        compiles = xla is None and not accelerated and compiles_for_cpus()
        self._kernels = (compiles or None) if cpu_kernels else False
        if xla is None:
            xla = accelerated and not tpu
        self._xla = xla
        self._make_forward_backward()

    def get_compile_config(self):
        """The arguments of `compile`, which a saved model keeps."""
        return keras.saving.serialize_keras_object(
            {"optimizer": self.optimizer, **self._options} if self.compiled else {}
        )

    def compile_from_config(self, config):
        """Compiles a loaded model as it was when it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self._maybe_symbolic_build()

    def _make_forward_backward(self):
        self._forward_backward = tf.function(self._gradients, jit_compile=True) if self._xla else self._gradients

    @property
    def static_shapes(self):
        """Whether every batch must have one shape: on a TPU, which computes in replicas alone."""
        return is_tpu(self.distribute_strategy)

    def fit(self, x, *, steps_per_epoch=None, **kwargs):
        """Keras's `fit` on a dataset (or dict of arrays) of feature dicts.

        As in Keras, arrays are shuffled (`shuffle=False` leaves them in their order), and a dataset is read
        again in each epoch as it is: a `task.dataset(...)` in the same order, corrupted examples with the masks of their
        feature `epoch`. `task.dataset(..., epoch=e)` has another order for each epoch; a `ShardReader.dataset` with
        `steps_per_epoch` is read on from epoch to epoch.

        Raises:
            ConfigError: labels or weights beside `x`.
            NonFiniteError: a loss or gradient became NaN or infinite.
        """
        if any(kwargs.get(name) is not None for name in ("y", "sample_weight", "class_weight")):
            raise ConfigError(_ONE_DICT)
        self._set_steps_per_execution(steps_per_epoch, kwargs.get("validation_steps"))
        if isinstance(x, tf.data.Dataset):
            kwargs.setdefault("shuffle", False)  # Keras warns that it does not shuffle it
        return super().fit(x, steps_per_epoch=steps_per_epoch, **kwargs)

    def evaluate(self, x=None, *, steps=None, **kwargs):
        """Keras's `evaluate` on a dataset (or dict of arrays) of feature dicts."""
        if not kwargs.get("_use_cached_eval_dataset"):  # of `fit`, which has set them
            self._set_steps_per_execution(steps)
        return super().evaluate(x, steps=steps, **kwargs)

    def _set_steps_per_execution(self, *numbers):
        """The most steps of a call that divide each number of steps, where one is given."""
        for together in range(getattr(self, "_most_steps", 1), 0, -1):
            if not any(number and number % together for number in numbers):
                break
        if together != self.steps_per_execution:
            self.steps_per_execution = together
            self.train_function = self.test_function = self.predict_function = None

    # -- what fit, evaluate and train_on_batch call -------------------------------------------

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Variables exist since construction; stock Keras would pull a batch of data to build.
        if self.optimizer is not None and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)

    def _symbolic_build(self, iterator=None, data_batch=None):
        self._maybe_symbolic_build(iterator, data_batch)

    def make_train_function(self, force=False):
        """Keras's; `force` is needed after a change of the trainable variables."""
        if force:
            self._make_forward_backward()
        if self.train_function is None or force:
            self.train_function = self._logged(self._repeated(self.train_step, training=True))
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._logged(self._repeated(self.test_step, training=False))
        return self.test_function

    def reset_metrics(self):
        super().reset_metrics()
        self._totals, self._other_logs = None, {}

    @property
    def running_sums(self):
        """What the means since the last `reset_metrics` are made of: list of floats, or None before the first step."""
        return None if self._totals is None else self._totals.tolist()

    @running_sums.setter
    def running_sums(self, sums):
        self._totals = None if sums is None else np.array(sums)

    def get_metrics_result(self):
        """The means since the last `reset_metrics`, exact over replicas, steps and batch sizes."""
        losses, metrics = self._names or ([], [])
        if self._totals is None or not losses:
            return {}
        sums = self._totals.reshape(-1, 2)
        ratios = np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(sums)), where=sums[:, 1] != 0)
        result = {"loss": sum(self._coefficient(n) * r for n, r in zip(losses, ratios))}
        result |= {f"{n}_loss": r for n, r in zip(losses, ratios)}
        result |= dict(zip(metrics, ratios[len(losses) :]))
        return {name: float(value) for name, value in result.items()}

    def _get_metrics_result_or_logs(self, logs):
        return self.get_metrics_result() | self._other_logs or logs

    # -- one step, in replica context -----------------------------------------------------------

    def train_step(self, data):
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

    def test_step(self, data):
        """The losses and metrics of a batch without an update, of this replica alone; overridden as `train_step`."""
        features = _without_tuple(data)
        losses, metrics = self._loss_sums(features, training=False)
        sums = self._pair_with(self._stack(losses, metrics), self._loss_weights(features))
        return self._noted(sums, tf.constant(-1), {})

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of a dict of features `x`, of this replica alone, for a `train_step` of a subclass.

        The other arguments are Keras's, and are not used: labels and weights are among the features.
        """
        features = _without_tuple(x)
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
        features = _without_tuple(features)
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
        seed = fold_in(seed, tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32))
        return seed

    def _loss_weights(self, features):
        return self.loss_weights(features) | {_ADDED: tf.cast(_rows(features), tf.float32)}

    def _loss_sums(self, features, training):
        """`loss_sums`, and with it what layers have added to the loss: as in Keras, its mean over the rows."""
        self._clear_losses()  # of another graph
        losses, metrics = self.loss_sums(features, training=training)
        added = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in self.losses]
        self._clear_losses()
        if added:
            losses = losses | {_ADDED: tf.add_n(added) * tf.cast(_rows(features), tf.float32)}
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

    def _coefficient(self, name):
        return float(self.loss_coefficients.get(name, 1.0))

    def _stack(self, losses, metrics):
        """[losses, then (sum, weight) of each metric], and remembers the names while tracing."""
        self._names = (list(losses), list(metrics))
        return tf.stack(list(losses.values()) + [tf.cast(x, tf.float32) for m in metrics.values() for x in m])

    def _pair_with(self, sums, weights):
        """Puts each loss's weight beside its sum: [(sum, weight) of losses, of metrics]."""
        losses = self._names[0]
        pairs = [x for i, n in enumerate(losses) for x in (sums[i], weights[n])]
        return tf.concat([tf.stack(pairs), sums[len(losses) :]], 0)

    # -- many steps, in cross-replica context ---------------------------------------------------

    def _repeated(self, step, training):
        """A graph function of up to `steps_per_execution` steps, as many as there is data for."""
        strategy, repetitions = self.distribute_strategy, int(self.steps_per_execution)
        overridden = training and type(self).train_step is not TensorFlowTrainer.train_step

        def one_replica(features):
            features = _without_tuple(features)
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

    def _logged(self, steps):
        """Runs `steps`, adds its sums to the totals in float64, and returns the means so far."""

        names = None

        def function(iterator):
            nonlocal names
            if names is not None:
                self._names = names  # training and evaluation may have different metrics
            sums, extra, logs, bad, steps_ago = steps(iterator)
            names = self._names
            if bad >= 0:
                done = int(self.optimizer.iterations.numpy()) + self._scales_loss  # then, it was left out
                place = f"{'update' if self._scales_loss else 'step'} {done - int(steps_ago) + 1}"
                self._raise_non_finite(int(bad), place)
            sums = sums.numpy().astype(np.float64)
            self._totals = sums if self._totals is None else self._totals + sums
            extra, self._other_logs = ({name: float(value) for name, value in x.items()} for x in (extra, logs))
            return self.get_metrics_result() | extra | self._other_logs

        return function

    def _raise_non_finite(self, index, place):
        from bert_tf.backend.model import NonFiniteError

        losses, metrics = self._names
        names = [f"the {kind} of {n}" for n in losses + metrics for kind in ("sum", "weight")]
        names += [f"the gradient of {v.path}" for v in self._variables_with_gradient()]
        raise NonFiniteError(
            f"{place}: {names[index]} is not finite. Nothing is saved of this step, and older checkpoints "
            "are as they were; start a new run with a lower learning rate, a longer warm-up or a smaller clip"
        )


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


def _without_tuple(features):
    """Keras puts a batch into a tuple, with None for the labels and weights that it was not given."""
    if isinstance(features, (tuple, list)):
        features, *others = features
        if any(x is not None for x in others):
            features = None
    if not isinstance(features, dict):
        raise ConfigError(_ONE_DICT)
    return features


def _take_reduced_gradients(optimizer):
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
