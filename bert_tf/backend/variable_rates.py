"""Learning rates and gradients that differ between variables, for any optimizer of Keras."""


def scale_updates(optimizer, rates=None, gradients=None):
    """Multiplies the learning rate, or the gradient, of single variables by a factor.

    A factor of the learning rate also multiplies the decoupled weight decay, as in ELECTRA's optimizer. A factor of the
    gradient is applied after clipping and leaves the weight decay as it is, as in XLNet's. The factors are no state: a
    run that is resumed gets the same ones from its settings.

    Args:
        optimizer: a Keras optimizer that is not built yet; it is changed in place.
        rates: path of a variable -> factor of its learning rate, or function from the number of finished updates (an
            int scalar tensor) to it; 1 where a path is absent.
        gradients: path of a variable -> factor of its gradient; 1 where a path is absent.

    Returns:
        The optimizer.

    Example:
        optimizer = scale_updates(AdamW(1e-3), rates={"embeddings/token_embeddings": 0.5})
    """
    rates, gradients = rates or {}, gradients or {}
    base, decay = type(optimizer), optimizer.weight_decay

    class Scaled(base):
        def update_step(self, gradient, variable, learning_rate):
            path = self._trainable_variables[self._get_variable_index(variable)].path
            if gradients.get(path, 1.0) != 1.0:
                gradient = gradient * gradients[path]
            super().update_step(gradient, variable, self._scaled(learning_rate, rates.get(path, 1.0)))

        def _scaled(self, value, factor):
            if factor == 1.0:
                return value
            return value * (factor(self.iterations) if callable(factor) else factor)

        def _apply_weight_decay(self, variables):
            if decay is None:
                return
            by_factor = {}
            for variable in variables:
                by_factor.setdefault(rates.get(variable.path, 1.0), []).append(variable)
            for factor, group in by_factor.items():
                # Keras multiplies it by the learning rate of all variables.
                self.weight_decay = self._scaled(decay, factor)
                super()._apply_weight_decay(group)
            self.weight_decay = decay

    Scaled.__name__ = Scaled.__qualname__ = base.__name__
    optimizer.__class__ = Scaled
    return optimizer
