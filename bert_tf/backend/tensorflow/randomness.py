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
import tensorflow as tf

from bert_tf.backend import hashing
from bert_tf.backend.layer import Layer
from bert_tf.backend.tensorflow.loops import (
    PIECE,
    compiled_loop,
    dropped,
    in_pieces,
    in_train_step_on_cpu,
    loop,
    should_compile,
)
from bert_tf.errors import ConfigError

_RANGE = 1 << hashing.BITS  # of the random numbers that are compared with the rate
_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


@dataclasses.dataclass
class _Step:
    """What the masks of one forward pass are made of."""

    seed: object  # int32 tensor [2]
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
        return tf.bitwise.bitwise_xor(self.seed, np.frombuffer(name, "<i4"))


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


class Dropout(Layer):
    """Dropout (Srivastava et al. 2014); inverted, so nothing happens at inference.

    In the train step of a `TrainableModel` the mask comes from the step's seed; anywhere else
    (a user's own training loop) from TensorFlow's generator, which `keras.utils.set_random_seed` seeds. Unlike
    `keras.layers.Dropout` it has no state of its own: a checkpoint of it would hold variables with automatic names, and
    be no more exact.

    Args:
        rate: the fraction of elements set to zero, resolved to 2^-24; the others are divided by the
            fraction kept.

    Call arguments:
        inputs: float tensor of any shape.
        training: whether to drop.

    Example:
        Dropout(0.1)(np.ones((2, 8), "float32"), training=True)  # [2, 8]
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.supports_masking = self.built = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.rate == 0:
            return inputs
        if getattr(_active, "step", None) is None:
            # Keras would make a variable, which no strategy allows inside a step.
            return tf.nn.dropout(inputs, self.rate)
        return _dropped_in_one_piece(inputs, *self.draw(inputs))

    def draw(self, inputs: Any) -> Any:
        """What is kept of `inputs` in this step: bool of their shape, and the factor of what is, float32."""
        threshold, seed = round(self.rate * _RANGE), _active.step.next_seed(self)
        if not in_train_step_on_cpu():
            kept = _kept(inputs, seed, threshold)
        elif should_compile(inputs):
            kept = _kept_in_one_piece(inputs, seed, threshold)
        else:
            kept = _kept_in_pieces(inputs, constants=(seed, threshold))
        return kept, tf.constant(_RANGE / (_RANGE - threshold))


class UniformNumbers(Layer):
    """Random numbers in (0, 1) for each step of training, as `Dropout` draws its masks; a layer for its path in the model.

    Example:
        UniformNumbers().draw(3)  # float32 [3]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def draw(self, count: int) -> Any:
        if getattr(_active, "step", None) is None:
            return tf.random.uniform((count,))
        return hashing.uniform(_random_bits([count], _active.step.next_seed(self)))


def fold_in(seed: Any, number: Any) -> Any:
    """A seed, int32 [2], made of another and a number; the same in graph mode, XLA and on a TPU."""
    # Philox, named: the default algorithm is another one under XLA.
    return tf.random.experimental.stateless_fold_in(seed, number, alg="philox")


def _kept(inputs, seed, threshold):
    return _random_bits(tf.shape(inputs), seed) >= threshold


# Drawn once and kept, a byte each, for the backward pass: drawing takes longer than reading.
_dropped_in_one_piece, _kept_in_one_piece = compiled_loop(dropped), loop(_kept)
_kept_in_pieces = in_pieces(
    loop(lambda start, seed, threshold: _random_bits([PIECE], seed, start) >= threshold), tf.bool
)


def _random_bits(shape, seed, start=0):
    """int32 from 0 to 2^24 - 1 for each position, counted from `start`: a hash of the position and the seed.

    Two rounds of a hash, each begun with one half of the seed. Whole-number arithmetic, so the same in graph mode and in XLA, where it costs a tenth of
    what a generator of random streams does.
    """
    first, second = tf.unstack(tf.bitcast(seed, tf.uint32))
    positions = tf.bitcast(start + tf.reshape(tf.range(tf.reduce_prod(shape)), shape), tf.uint32)
    bits = hashing.mixed(hashing.mixed(positions + first) + second)
    return tf.bitcast(hashing.top_bits(bits), tf.int32)
