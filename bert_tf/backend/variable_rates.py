"""Learning rates and gradients that differ between variables."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops
from keras.optimizers.schedules import LearningRateSchedule

from bert_tf.errors import ConfigError

#: Path of a variable -> factor, or a factor for each variable in their order.
Factors = Mapping[str, Any] | Sequence[Any]


class ScaledUpdates(keras.optimizers.Optimizer):
    """Mixed into an optimizer: multiplies the learning rate, or the gradient, of single variables by a factor.

    A factor of the learning rate also multiplies the decoupled weight decay, as in ELECTRA's optimizer. A factor of the
    gradient is applied after clipping and leaves the weight decay as it is, as in XLNet's. The factors are saved with
    the optimizer's configuration, after `build` in the order of the variables, as Keras saves their state. A subclass
    calls `scaled` first in its `update_step`.

    Args:
        rate_factors: path of a variable -> factor of its learning rate, a number or a `LearningRateSchedule`, which is
            called with the number of finished updates; 1 where a path is absent. Or a list of factors, one for each
            variable in the order of `build`.
        gradient_factors: the same for the gradient, of numbers alone.
        args, kwargs: of the optimizer.

    Raises:
        ConfigError: a factor of another type; in `build`, another number of variables than of factors in a list.

    Example:
        @keras.saving.register_keras_serializable("my_project")
        class Descent(ScaledUpdates, keras.optimizers.SGD):
            def update_step(self, gradient, variable, learning_rate):
                super().update_step(*self.scaled(gradient, variable, learning_rate))

        Descent(0.1, rate_factors={"embeddings/token_embeddings": 0.5})
    """

    weight_decay: Any

    def __init__(
        self, *args: Any, rate_factors: Factors | None = None, gradient_factors: Factors | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.set_factors(rate_factors, gradient_factors)

    def set_factors(self, rate_factors: Factors | None = None, gradient_factors: Factors | None = None) -> None:
        """Replaces the factors of an optimizer that is not built; the arguments are those of the class."""
        # Proxies, because TensorFlow would look for variables in a dict.
        self.rate_factors = types.MappingProxyType(_by_key(rate_factors, (int, float, LearningRateSchedule)))
        self.gradient_factors = types.MappingProxyType(_by_key(gradient_factors, (int, float)))

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        # From here on by the number of a variable.
        self.rate_factors = types.MappingProxyType(_by_number(self.rate_factors, variables))
        self.gradient_factors = types.MappingProxyType(_by_number(self.gradient_factors, variables))

    def scaled(self, gradient: Any, variable: Any, learning_rate: Any) -> tuple[Any, Any, Any]:
        """Decays `variable`; the arguments of `update_step` with its factors."""
        number = self._get_variable_index(variable)
        factor = self.gradient_factors.get(number, 1.0)
        if factor != 1.0:
            gradient = gradient * factor
        factor = self.rate_factors.get(number, 1.0)
        if factor != 1.0:
            learning_rate *= factor(self.iterations) if isinstance(factor, LearningRateSchedule) else factor
        self._decay(variable, learning_rate)
        return gradient, variable, learning_rate

    def _apply_weight_decay(self, variables):
        """Left to `scaled`, which has the learning rate: Keras computes the schedule again for each variable."""

    def _decay(self, variable, learning_rate):
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * ops.cast(learning_rate, variable.dtype))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("rate_factors", "gradient_factors"):
            if factors := dict(getattr(self, name)):
                in_order = [factors.get(i, 1.0) for i in range(len(self._trainable_variables))]
                config[name] = keras.saving.serialize_keras_object(in_order if self.built else factors)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        factors = {
            name: keras.saving.deserialize_keras_object(config[name], custom_objects=custom_objects)
            for name in ("rate_factors", "gradient_factors")
            if name in config
        }
        return super().from_config(config | factors, custom_objects=custom_objects)


def _by_key(factors, types_of_factors):
    """Factors by the path or the number of a variable, checked."""
    factors = dict(enumerate(factors)) if isinstance(factors, (list, tuple)) else dict(factors or {})
    for key, factor in factors.items():
        if not isinstance(factor, types_of_factors):
            *others, last = [t.__name__ for t in types_of_factors]
            raise ConfigError(
                f"the factor of {key!r} is {factor!r}, which cannot be saved with the optimizer; give an object of "
                f"{', '.join(others)} or {last}"
            )
    return factors


def _by_number(factors, variables):
    """Factors by the number of a variable, those of 1 left out."""
    if not factors:
        return {}
    if isinstance(next(iter(factors)), str):
        factors = {i: factors.get(variable.path, 1.0) for i, variable in enumerate(variables)}
    if len(factors) != len(variables):
        raise ConfigError(
            f"an optimizer that was saved with factors of {len(factors)} variables is built for {len(variables)}; give "
            "it the factors by the paths of the variables"
        )
    return {number: factor for number, factor in factors.items() if factor != 1.0}


def scale_updates(optimizer: Any, rate_factors: Factors | None = None, gradient_factors: Factors | None = None) -> Any:
    """Gives an optimizer that is not built yet the factors of `ScaledUpdates`.

    Returns:
        The optimizer.

    Raises:
        ConfigError: it does not take factors, or has some already.

    Example:
        optimizer = scale_updates(AdamW(1e-3), rate_factors={"embeddings/token_embeddings": 0.5})
    """
    if not isinstance(optimizer, ScaledUpdates):
        raise ConfigError(
            f"{type(optimizer).__name__} does not scale the updates of single variables; use AdamW, Lamb, Adafactor or "
            "Adagrad of bert_tf.backend, or mix bert_tf.backend.ScaledUpdates into your optimizer"
        )
    if optimizer.rate_factors or optimizer.gradient_factors:
        raise ConfigError(f"{optimizer.name} already has factors of single variables; give it all of them at once")
    optimizer.set_factors(rate_factors, gradient_factors)
    return optimizer
