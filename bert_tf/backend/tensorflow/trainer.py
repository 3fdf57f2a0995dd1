"""Keras 3's `fit` made exact under tf.distribute.

Stock Keras clips each replica's gradients before they are summed, averages weighted losses per
replica, and cannot accumulate, or run several steps per call, under a strategy. This class
replaces the part of the trainer that faces the strategy; callbacks, epochs and progress bars
remain Keras's own.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.backend.tensorflow.loops import compiles_for_cpus
from bert_tf.backend.tensorflow.steps import ONE_DICT, Steps, take_reduced_gradients
from bert_tf.backend.tensorflow.tpu import check_xla, is_tpu
from bert_tf.errors import ConfigError

#: Arguments of Keras's `compile` that this one refuses, and what to do instead.
_UNSUPPORTED_COMPILE_ARGUMENTS = {
    "loss": "which has its own loss; leave it out",
    "loss_weights": "whose losses have the factors of its attribute loss_coefficients; leave it out",
    "metrics": "whose metrics are those of its loss_sums; leave it out",
    "weighted_metrics": "whose metrics are those of its loss_sums; leave it out",
    "run_eagerly": "which trains in a graph; call tf.config.run_functions_eagerly(True) instead",
}


class Trainer(Steps):
    """The base class of `TrainableModel`."""

    def compile(
        self,
        optimizer: Any = "adam",
        *,
        accumulation_steps: int = 1,
        steps_per_execution: int | str = 1,
        remat: bool = False,
        xla: bool | None = None,
        cpu_kernels: bool = True,
        seed: Any = 0,
        **kwargs: Any,
    ) -> None:
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
            cpu_kernels: False computes every layer as Keras does (`bert_tf.backend.plain`): slower on a
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
        inner: Any = getattr(self.optimizer, "inner_optimizer", self.optimizer)
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
        take_reduced_gradients(inner)
        self._options = {"accumulation_steps": accumulation_steps, "steps_per_execution": steps_per_execution} | kwargs
        self._options |= {"remat": remat, "xla": xla, "cpu_kernels": cpu_kernels, "seed": seed}
        self._clip_norm, self._scales_loss = inner.global_clipnorm, inner is not self.optimizer
        self._accumulation_steps = accumulation_steps
        self._remat = remat
        self._seed = seed
        self._names = self._totals = None
        self._other_logs = {}
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

    def get_compile_config(self) -> dict[str, Any]:
        """The arguments of `compile`, which a saved model keeps."""
        return keras.saving.serialize_keras_object(
            {"optimizer": self.optimizer, **self._options} if self.compiled else {}
        )

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was when it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self._maybe_symbolic_build()

    def _make_forward_backward(self):
        self._forward_backward = tf.function(self._gradients, jit_compile=True) if self._xla else self._gradients

    @property
    def static_shapes(self) -> bool:
        """Whether every batch must have one shape: on a TPU, which computes in replicas alone."""
        return is_tpu(self.distribute_strategy)

    def fit(self, x: Any, *, steps_per_epoch: int | None = None, **kwargs: Any) -> Any:
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
            raise ConfigError(ONE_DICT)
        self._set_steps_per_execution(steps_per_epoch, kwargs.get("validation_steps"))
        if isinstance(x, tf.data.Dataset):
            kwargs.setdefault("shuffle", False)  # Keras warns that it does not shuffle it
        return super().fit(x, steps_per_epoch=steps_per_epoch, **kwargs)

    def evaluate(self, x: Any = None, *, steps: int | None = None, **kwargs: Any) -> Any:
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

    def make_train_function(self, force: bool = False) -> Any:
        """Keras's; `force` is needed after a change of the trainable variables."""
        if force:
            self._make_forward_backward()
        if self.train_function is None or force:
            self.train_function = self._logged(self._repeated(self.train_step, training=True))
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        if self.test_function is None or force:
            self.test_function = self._logged(self._repeated(self.test_step, training=False))
        return self.test_function

    def reset_metrics(self) -> None:
        super().reset_metrics()
        self._totals, self._other_logs = None, {}

    @property
    def running_sums(self) -> list[float] | None:
        """What the means since the last `reset_metrics` are made of: list of floats, or None before the first step."""
        return None if self._totals is None else self._totals.tolist()

    @running_sums.setter
    def running_sums(self, sums: list[float] | None) -> None:
        self._totals = None if sums is None else np.array(sums)

    def get_metrics_result(self) -> dict[str, float]:
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
