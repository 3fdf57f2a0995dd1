"""Keras 3's `fit` made exact under tf.distribute.

Stock Keras clips each replica's gradients before they are summed, averages weighted losses per
replica, and cannot accumulate, or run several steps per call, under a strategy. This class
replaces the part of the trainer that faces the strategy; callbacks, epochs and progress bars
remain Keras's own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.backend.tensorflow.loops import compiles_for_cpus
from bert_tf.backend.tensorflow.steps import Steps, take_reduced_gradients
from bert_tf.backend.tensorflow.tpu import check_xla, is_tpu

# So many batches that come alone run operation by operation: tracing takes as long as some five of them.
SINGLE_BATCHES = 3


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
        xla = self._check_compile(xla, kwargs)
        # Not `jit_compile`: XLA compiles forward and backward pass alone, for it cannot hold the collectives.
        super().compile(optimizer=optimizer, jit_compile=False, **kwargs)
        inner = self._check_compiled()
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

    def _make_forward_backward(self):
        self._forward_backward = tf.function(self._gradients, jit_compile=True) if self._xla else self._gradients

    @property
    def static_shapes(self) -> bool:
        """Whether every batch must have one shape: on a TPU, which computes in replicas alone."""
        return is_tpu(self.distribute_strategy)

    @property
    def num_replicas(self) -> int:
        """Into how many parts a batch of static shapes is divided."""
        return self.distribute_strategy.num_replicas_in_sync

    def _infer(self, features):
        """`call` without dropout on a dict of features, for evaluation and prediction: its dict of tensors."""
        if not self.static_shapes:
            return self(features, training=False)
        parts = self.distribute_strategy.run(self._infer_part, args=(features,))
        local = self.distribute_strategy.experimental_local_results
        return {name: tf.concat(local(values), axis=0) for name, values in parts.items()}

    @property
    def infer(self) -> Any:
        """`call` without dropout on a dict of features, for evaluation and prediction, as a graph: its dict of tensors.

        The graph is made anew when the model's variables are others, as after `enable_lora` or `quantize` on a layer.
        """
        # Not Keras's predict_on_batch, which under a strategy answers once per replica and without compile() runs
        # through XLA. Keras would track what is set as an attribute.
        function, traced = self.__dict__.get("_inferred", (None, []))
        if [*map(id, traced)] != [*map(id, self.variables)]:
            function = tf.function(self._infer, autograph=False)
            self.__dict__["_inferred"] = function, self.variables
        return function

    _runs_alone = 0

    def infer_alone(self, features: Any, spec: Callable[[], Any]) -> Any:
        """`infer` of a batch that comes alone: in the first calls operation by operation, which begins sooner.

        The numbers are those of the graph but for rounding: no operations are fused.

        Args:
            features: a batch.
            spec: gives the shapes and types of all batches with these features.
        """
        if self._runs_alone < SINGLE_BATCHES:
            self._runs_alone += 1
            return self._infer(features)
        specs = self.__dict__.setdefault("_specs_alone", {})  # which Keras need not track
        names = frozenset(features)
        if names not in specs:
            specs[names] = spec()
        return self.infer.get_concrete_function(specs[names])(features)

    def compiled_call(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of a dict of features that reads the variables of this model, as a graph."""
        return tf.function(lambda features: function(features), autograph=False)  # without further arguments

    def _infer_part(self, features):
        """What `infer` answers for the examples of this replica."""
        replica = tf.distribute.get_replica_context()

        def part(tensor):
            size = tensor.shape[0] // replica.num_replicas_in_sync
            begin = [replica.replica_id_in_sync_group * size] + [0] * (tensor.shape.rank - 1)
            return tf.slice(tensor, begin, [size, *tensor.shape[1:]])

        return self({name: part(tensor) for name, tensor in features.items()}, training=False)

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
