"""What `fit` has on every backend: the checks of `compile`, sums of losses and metrics, and what they become."""

from typing import Any

import keras
import numpy as np

from bert_tf.errors import ConfigError, NonFiniteError

#: The name of the loss that layers add (`add_loss`, regularizers); its weight is the number of rows.
ADDED = "added"

ONE_DICT = "a batch must be one dict of features with the labels and weights inside, not (x, y) or sample_weight"

#: Arguments of Keras's `compile` that this one refuses, and what to do instead.
_UNSUPPORTED_COMPILE_ARGUMENTS = {
    "loss": "which has its own loss; leave it out",
    "loss_weights": "whose losses have the factors of its attribute loss_coefficients; leave it out",
    "metrics": "whose metrics are those of its loss_sums; leave it out",
    "weighted_metrics": "whose metrics are those of its loss_sums; leave it out",
    "run_eagerly": "which trains in a graph; call tf.config.run_functions_eagerly(True) instead",
}


class Fitting(keras.Model):
    """The part of a `Trainer` that does not depend on the backend."""

    loss_coefficients: dict[str, float]
    steps_per_execution: Any
    _options: dict[str, Any]  # the arguments of `compile`
    _names: Any  # of losses and of metrics, as the step that was traced last has them
    _totals: Any  # float64: their sums and weights since `reset_metrics`
    _other_logs: dict[str, float]  # what an overridden step returned last

    def _check_compile(self, xla, kwargs):
        """Takes what only Keras's `compile` has out of `kwargs`, and refuses what has no effect; returns `xla`."""
        compiled = kwargs.pop("jit_compile", "auto")
        if compiled not in ("auto", None):
            if xla not in (bool(compiled), None):
                raise ConfigError(f"compile(xla={xla}, jit_compile={compiled}) disagree; give one of them")
            xla = bool(compiled)
        for name, instead in _UNSUPPORTED_COMPILE_ARGUMENTS.items():
            if kwargs.pop(name, None):
                raise ConfigError(f"compile({name}=...) would have no effect on {type(self).__name__}, {instead}")
        return xla

    def _check_compiled(self):
        """Refuses an optimizer that updates otherwise; returns it, without what scales the loss under float16."""
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
        return inner

    def get_compile_config(self) -> dict[str, Any]:
        """The arguments of `compile`, which a saved model keeps."""
        return keras.saving.serialize_keras_object(
            {"optimizer": self.optimizer, **self._options} if self.compiled else {}
        )

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was when it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self._maybe_symbolic_build()

    def outside_variables(self) -> list[Any]:
        """The variables that the loss reads and that are not of this model, such as those of a teacher."""
        return []

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
        if hasattr(x, "element_spec"):  # a tf.data.Dataset
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

    def _coefficient(self, name):
        return float(self.loss_coefficients.get(name, 1.0))

    def _raise_non_finite(self, index, place):
        losses, metrics = self._names
        names = [f"the {kind} of {n}" for n in losses + metrics for kind in ("sum", "weight")]
        names += [f"the gradient of {v.path}" for v in self._variables_with_gradient()]
        raise NonFiniteError(
            f"{place}: {names[index]} is not finite. Nothing is saved of this step, and older checkpoints "
            "are as they were; start a new run with a lower learning rate, a longer warm-up or a smaller clip"
        )


def without_tuple(features: Any) -> dict[str, Any]:
    """Keras puts a batch into a tuple, with None for the labels and weights that it was not given."""
    if isinstance(features, (tuple, list)):
        features, *others = features
        if any(x is not None for x in others):
            features = None
    if not isinstance(features, dict):
        raise ConfigError(ONE_DICT)
    return features
