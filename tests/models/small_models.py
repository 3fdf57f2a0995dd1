"""Small models without golden arrays: their sizes, what they read, and weights away from their initial values."""

import numpy as np

SIZES = dict(vocabulary_size=50, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=40, initializer_range=0.3)


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).integers(5, 50, shape).astype("int32")


def moved(model, seed, dimensions=None):
    """The model, after its weights of so many dimensions, None for all, were moved from their initial values, such as zeros."""
    generator = np.random.default_rng(seed)
    for variable in model.weights:
        if dimensions in (None, len(variable.shape)):
            variable.assign(variable + 0.2 * generator.normal(size=variable.shape))
    return model
