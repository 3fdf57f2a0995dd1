"""Keras 3's `fit` on JAX, with the sums, updates and masks of `bert_tf.backend.tensorflow`.

The state of a model goes through a compiled function, as in Keras's own trainer for JAX, whose loops, callbacks and
distribution over devices remain. Sums over a batch are those of the global batch, however `keras.distribution` divides it.
"""

from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np
from jax import numpy as jnp

from bert_tf.backend.fitting import ADDED, Fitting, without_tuple
from bert_tf.backend.jax.randomness import fold_in
from bert_tf.backend.randomness import step_randomness
from bert_tf.errors import ConfigError

#: What is said of settings that are not for JAX.
NOT_COMPILED, FLOAT16 = "JAX always compiles; leave {} out", "training in float16 needs TensorFlow; {}"

#: The place of `outside_variables` among the features of a batch.
_OUTSIDE = "outside_variables"


class Trainer(Fitting):
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
            accumulation_steps: micro-batches that a batch is cut into, computed one after the other
                before one update; the numbers are those of the whole batch.
            steps_per_execution: the most updates between two looks of the host at their results; "auto": 1 on CPUs, 16
                elsewhere.
            remat: gradient checkpointing: the backward pass computes each transformer layer again.
            xla: JAX always compiles: None or True.
            cpu_kernels: without effect; TensorFlow alone has them.
            seed: of the dropout masks.
            kwargs: `jit_compile`, Keras's name of `xla`; `auto_scale_loss`, as in Keras.

        Raises:
            ConfigError: a setting that cannot be right.
        """
        xla = self._check_compile(xla, kwargs)
        if xla is False:
            raise ConfigError(f"compile(xla=False): {NOT_COMPILED.format('xla')}")
        super().compile(optimizer=optimizer, jit_compile=True, **kwargs)
        if self._check_compiled() is not self.optimizer:
            raise ConfigError(FLOAT16.format("on JAX take the dtype policy 'mixed_bfloat16'"))
        self._options = {"accumulation_steps": accumulation_steps, "steps_per_execution": steps_per_execution} | kwargs
        self._options |= {"remat": remat, "xla": xla, "cpu_kernels": cpu_kernels, "seed": seed}
        self._accumulation_steps, self._remat, self._seed = accumulation_steps, remat, seed
        self._names = self._totals = None
        self._other_logs = {}
        if steps_per_execution == "auto":
            steps_per_execution = 16 if self.static_shapes else 1
        self._most_steps = self.steps_per_execution = int(steps_per_execution)

    @property
    def static_shapes(self) -> bool:
        """Whether every batch should have one shape: where compiling a second one takes longer than padding."""
        return jax.default_backend() != "cpu"

    @property
    def num_replicas(self) -> int:
        """Into how many parts a batch of static shapes is divided."""
        distribution = keras.distribution.distribution()
        return 1 if distribution is None else distribution.device_mesh.shape[0]

    def infer(self, features: dict[str, Any]) -> dict[str, Any]:
        """`call` without dropout on a dict of features, for evaluation and prediction: its dict of arrays."""
        if not hasattr(self, "_inferred"):
            # Keras would look for variables in a function that is an attribute.
            object.__setattr__(self, "_inferred", self.compiled_call(lambda features: self(features, training=False)))
        return self._inferred(features)

    def infer_alone(self, features: Any, spec: Callable[[], Any]) -> Any:
        """`infer` of a batch that comes alone. JAX compiles single operations as well, so that none is quicker."""
        return self.infer(features)

    def compiled_call(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of a dict of features that reads the variables of this model, compiled."""

        @jax.jit
        def compiled(trainable, others, features):
            with self._scope(trainable, others):
                return function(features)

        def call(features):
            variables = self.trainable_variables, self.non_trainable_variables
            values = ([_local(v.value) for v in part] for part in variables)
            return compiled(*values, {name: np.asarray(value) for name, value in features.items()})

        return call

    def _symbolic_build(self, iterator=None, data_batch=None):
        # Variables exist since construction; stock Keras would pull a batch of data to build.
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    _maybe_symbolic_build = _symbolic_build

    # -- one step, from a state and a batch to logs and a state ----------------------------------

    def train_step(self, state: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """One update, as Keras's guide "Customizing what happens in fit() with JAX" has it.

        Returns:
            (logs, state): the arrays that `_logged` makes means of, and the new state.
        """
        trainable, others, optimizer, metrics = state
        features, read = self._taken_apart(data)
        read += zip(self.optimizer.variables, optimizer)
        with self._scope(trainable, others, read):
            local = self._loss_weights(features)
            step = jnp.asarray(self.optimizer.iterations.value, "int32")
        seed = fold_in(jnp.stack([step, jnp.int32(self._seed)]), 0)  # that of TensorFlow's first replica
        sums: Any = None
        gradients: Any = None
        for number, part in enumerate(_split(features, self._accumulation_steps)):
            part_sums, others, part_gradients = self._gradients(
                trainable, others, read, part, local, fold_in(seed, number)
            )
            sums = part_sums if sums is None else sums + part_sums
            gradients = part_gradients if gradients is None else [a + b for a, b in zip(gradients, part_gradients)]
        sums = self._pair_with(sums, local)
        squares = jnp.stack([jnp.sum(jnp.square(g)) for g in gradients])
        finite = jnp.isfinite(jnp.concatenate([sums, squares]))
        logs = {
            "sums": sums,
            "gradient_norm": jnp.sqrt(jnp.sum(squares)),
            "bad": jnp.where(jnp.all(finite), -1, jnp.argmin(finite)),
        }
        mapping = [*zip(self.trainable_variables, trainable), *zip(self.optimizer.variables, optimizer)]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self.optimizer.apply(gradients, self._variables_with_gradient())
        trainable = [_value(scope, v) for v in self.trainable_variables]
        optimizer = [_value(scope, v) for v in self.optimizer.variables]
        return logs, (trainable, others, optimizer, metrics)

    def test_step(self, state: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """The losses and metrics of a batch without an update; as `train_step`."""
        trainable, others, metrics = state
        features, read = self._taken_apart(data)
        with self._scope(trainable, others, read):
            losses, measured = self._loss_sums(features, training=False)
            sums = self._pair_with(self._stack(losses, measured), self._loss_weights(features))
        return {"sums": sums, "bad": -1}, (trainable, others, metrics)

    def _with_outside(self, data):
        """What a step takes: a batch, and in it the values of `outside_variables`, which would be constants of the program."""
        if not (outside := self.outside_variables()):
            return data
        return without_tuple(data) | {_OUTSIDE: [variable.value for variable in outside]}

    def _taken_apart(self, data):
        """(the features, (variable, value) of the `outside_variables`) of `_with_outside`."""
        features = dict(without_tuple(data))
        return features, list(zip(self.outside_variables(), features.pop(_OUTSIDE, [])))

    def _scope(self, trainable, others, read=()):
        """A block in which the variables have these values; `read`: (variable, value) of what is only read."""
        mapping = [*zip(self.trainable_variables, trainable), *zip(self.non_trainable_variables, others), *read]
        return keras.StatelessScope(state_mapping=mapping, collect_losses=True)

    def _gradients(self, trainable, others, read, features, weights, seed):
        """(sums, values of the variables that are not trained, gradients of those that have one)."""

        def total(trainable):
            randomness = step_randomness(seed, self, recomputes=self._remat)
            with self._scope(trainable, others, read) as scope, randomness:
                losses, metrics = self._loss_sums(features, training=True)
                values = [_value(scope, v) for v in self.non_trainable_variables]
            ratios = [_ratio(losses[name], weights[name]) * self._coefficient(name) for name in losses]
            return sum(ratios), (self._stack(losses, metrics), values)

        compute = jax.grad(total, has_aux=True)
        jaxpr, shapes = jax.make_jaxpr(compute, return_shape=True)(trainable)
        out = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *jax.tree.leaves(trainable))
        gradients, (sums, others) = jax.tree.unflatten(jax.tree.structure(shapes), out)
        # TensorFlow leaves a variable that the loss does not depend on as it is, without decay; JAX gives it zeros.
        self._with_gradient = [i for i, reached in enumerate(_depend(jaxpr.jaxpr)[: len(trainable)]) if reached]
        return sums, others, [_full(gradients[i]) for i in self._with_gradient]

    def _variables_with_gradient(self):
        return [self.trainable_variables[i] for i in self._with_gradient]

    def _loss_weights(self, features):
        return self.loss_weights(features) | {ADDED: jnp.float32(_rows(features))}

    def _loss_sums(self, features, training):
        """`loss_sums`, and with it what layers have added to the loss: as in Keras, its mean over the rows."""
        losses, metrics = self.loss_sums(features, training=training)
        added = [jnp.sum(jnp.asarray(loss, "float32")) for loss in self.losses]
        if added:
            losses = losses | {ADDED: sum(added) * _rows(features)}
        return losses, metrics

    def _stack(self, losses, metrics):
        """[losses, then (sum, weight) of each metric], and remembers the names while tracing."""
        self._names = (list(losses), list(metrics))
        values = [*losses.values(), *(x for pair in metrics.values() for x in pair)]
        return jnp.stack([jnp.asarray(value, "float32") for value in values])

    def _pair_with(self, sums, weights):
        """Puts each loss's weight beside its sum: [(sum, weight) of losses, of metrics]."""
        losses = self._names[0]
        pairs = [x for i, n in enumerate(losses) for x in (sums[i], jnp.asarray(weights[n], "float32"))]
        return jnp.concatenate([jnp.stack(pairs), sums[len(losses) :]])

    # -- what fit, evaluate and train_on_batch call -----------------------------------------------

    def _make_function(self, step_function, concatenate_outputs=False):
        """Of a compiled step up to `steps_per_execution` of them, and the means of all since `reset_metrics`."""
        if concatenate_outputs:
            return super()._make_function(step_function, concatenate_outputs)
        names, most = None, self.steps_per_execution

        def function(state, iterator):
            nonlocal names
            if names is not None:
                self._names = names  # training and evaluation may have different metrics
            done = []
            for data in iterator:
                logs, state = step_function(state, self._with_outside(data))
                done.append(logs)
                if len(done) == most:
                    break
            if not done:
                raise StopIteration
            if "sums" not in done[-1]:  # an overridden step
                return done[-1], state
            names = self._names
            for number, logs in enumerate(done):
                if logs["bad"] >= 0:
                    self._keep(state)
                    update = int(self.optimizer.iterations.value) - len(done) + number + 1
                    self._raise_non_finite(int(logs["bad"]), f"step {update}")
                sums = np.asarray(logs["sums"], "float64")
                self._totals = sums if self._totals is None else self._totals + sums
            extra = {"gradient_norm": float(logs["gradient_norm"])} if "gradient_norm" in logs else {}
            return self.get_metrics_result() | extra, state

        return function

    def _keep(self, state):
        """Gives the variables the values of a state of training, for an error ends the loop that would do it."""
        names = ("trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables")
        self._jax_state, self._jax_state_synced = dict(zip(names, state)), False
        self.jax_state_sync()


def _local(array):
    """An array that a process computes with alone: of a cluster its own copy, which is whole."""
    return array if array.is_fully_addressable else array.addressable_data(0)


def _value(scope, variable):
    value = scope.get_current_value(variable)
    return variable.value if value is None else value


def _ratio(total, weight):
    return jnp.where(weight == 0, 0.0, total / jnp.where(weight == 0, 1.0, weight))


def _full(gradient):
    """A gradient that can be summed and clipped with the rest, not in half precision."""
    return gradient.astype("float32") if gradient.dtype.itemsize == 2 else gradient


def _depend(jaxpr):
    """For each result of a jaxpr, whether it depends on anything: a gradient that does not is none."""
    reached = {*jaxpr.invars, *jaxpr.constvars}
    for equation in jaxpr.eqns:
        if any(variable in reached for variable in equation.invars if not hasattr(variable, "val")):
            reached.update(equation.outvars)
    return [not hasattr(variable, "val") and variable in reached for variable in jaxpr.outvars]


def _split(features, parts):
    """Cuts every feature into `parts` along the batch, the first parts one longer if uneven."""
    size = _rows(features)
    bounds = [size * i // parts for i in range(parts + 1)]
    return [{k: v[bounds[i] : bounds[i + 1]] for k, v in features.items()} for i in range(parts)]


def _rows(features):
    """The number of rows of a batch."""
    return next(iter(features.values())).shape[0]
