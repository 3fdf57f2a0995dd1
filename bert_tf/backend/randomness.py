"""Dropout without hidden state, and the recomputation of layers that have it.

Inside our train step every dropout mask is a pure function of (run seed, step, replica, micro-batch,
the layer's path in the model, which call of that layer). A resumed run therefore draws the masks that
the uninterrupted run would have drawn, and no two replicas, steps, layers or calls share one.
"""

import collections
import contextlib
import copy
import dataclasses
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from bert_tf.errors import ConfigError

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


@dataclasses.dataclass
class _Step:
    """What the masks of one forward pass are made of."""

    seed: Any  # int32 tensor [2]
    paths: dict[int, str]  # of `paths_of`
    recomputes: bool
    others: dict[int, str] = dataclasses.field(
        default_factory=dict
    )  # from the id of a layer outside the model to its path
    calls: dict[str, int] = dataclasses.field(default_factory=dict)  # from path to the calls so far

    def next_seed(self, layer):
        """The seed of this call of `layer`, int32 [2]: the step's, with 64 bits flipped that name the call."""
        # A layer outside the model is known by the order of first calls.
        path = self.paths.get(id(layer)) or self.others.setdefault(id(layer), f"/{len(self.others)}")
        self.calls[path] = self.calls.get(path, -1) + 1
        name = hashlib.blake2b(f"{path}#{self.calls[path]}".encode(), digest_size=8).digest()
        return self.seed ^ np.frombuffer(name, "<i4")


@contextlib.contextmanager
def step_randomness(seed: Any, model: Any = None, recomputes: bool = False) -> Iterator[None]:
    """Dropout layers called in this block draw from `seed`.

    Args:
        seed: int32 tensor [2], of bits as random as those of `fold_in`.
        model: a layer; each dropout inside it is known by its path, others by the order of their first calls.
        recomputes: whether `recomputed` has an effect in this block.
    """
    step = _Step(seed, {} if model is None else paths_of(model), recomputes)
    with _drawing_from(step):
        yield


@contextlib.contextmanager
def _drawing_from(step):
    previous = getattr(_active, "step", None)
    _active.step = step
    try:
        yield
    finally:
        _active.step = previous


def paths_of(model: Any) -> dict[int, str]:
    """The path of each layer inside `model`, by its id: "transformer_layer_3/attention/dropout".

    A path consists of the names of layers below `model`. A name that Keras chose counts the layers that the process
    made before, so a layer is numbered among the layers beside it instead: "dropout", "dropout:1" in the order in
    which they were made. The attribute or list that holds a layer does not matter. A layer that the model contains
    several times, as ALBERT's are, has the longest of its paths, of equally long ones the first in the alphabet.

    Raises:
        ConfigError: two layers have one path, and would share their masks.
    """
    found: dict[int, tuple[str, ...]] = {}
    for layer, path in _all_paths(model):
        found[id(layer)] = min(found.get(id(layer), path), path, key=lambda p: (-len(p), p))
    paths = {layer: "/".join(path) for layer, path in found.items()}
    twice = [path for path, count in collections.Counter(paths.values()).items() if count > 1]
    if twice:
        raise ConfigError(f"two layers of '{model.name}' have the path '{twice[0]}'; give one of them another name")
    return paths


def _all_paths(layer, path=()):
    for inner, name in _names_of(layer._layers):
        yield inner, (*path, name)
        yield from _all_paths(inner, (*path, name))


def _names_of(layers):
    """(layer, its name among `layers`)."""
    named = collections.defaultdict(list)
    for layer in {id(layer): layer for layer in layers}.values():
        name, number = re.sub(r"_\d+$", "", layer.name), re.search(r"_(\d+)$", layer.name)
        if name.replace("_", "") != type(layer).__name__.replace("_", "").lower():  # then Keras did not choose it
            name, number = layer.name, None
        named[name].append((int(number[1]) if number else 0, layer))
    for name, numbered in named.items():
        for rank, (_, layer) in enumerate(sorted(numbered, key=lambda pair: pair[0])):
            yield layer, f"{name}:{rank}" if rank else name


def recomputed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, computed a second time in the backward pass instead of being kept, if the step asks for it.

    Gradient checkpointing (Chen et al. 2016, arXiv:1604.06174): of what `function` computes only its
    results are kept. Its dropouts draw the same masks both times. It has no effect outside the train step
    of a model compiled with `remat=True`.

    Args:
        function: of float tensors, which get gradients as do variables that it reads. Whatever else it
            reads must not need a gradient.

    Returns:
        A function with the arguments and results of `function`.
    """
    step = getattr(_active, "step", None)
    if step is None or not step.recomputes:
        return function
    before = copy.copy(step.calls)

    def replayed(*tensors):
        # The first call counts on in `step`; a recomputation counts the same calls again.
        step.calls = dict(before)
        with _drawing_from(step):
            return function(*tensors)

    return keras.remat(replayed)


def current_step() -> Any:
    """What the masks of this forward pass are made of; None outside a block of `step_randomness`."""
    return getattr(_active, "step", None)
