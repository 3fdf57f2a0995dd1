"""Layers with random weights, their weights by name, and what blocks read."""

import numpy as np


def built(layer, *shape, scale=1.0):
    """The layer for inputs of this shape; no weight is 0 or 1 as at first, which would hide mistakes."""
    layer.build(shape)
    generator = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(generator.normal(size=weight.shape) * scale + weight.path.endswith(("gamma", "scale")))
    return layer


def weights_of(layer):
    """Name within the layer -> float64."""
    return {v.path.split("/", 1)[-1]: np.asarray(v, "float64") for v in layer.weights}


def block_inputs(size):
    """(vectors, mask) of two texts of seven tokens, three of the first padding."""
    x = np.random.default_rng(1).normal(size=(2, 7, size)).astype("float32")
    mask = np.zeros((2, 1, 1, 7), "float32")
    mask[0, ..., 4:] = -1e9
    return x, mask
