"""Chains of element-wise operations compiled to one loop, and the switch of all CPU kernels.

TensorFlow runs a chain of element-wise operations on a CPU one by one, each through memory. In a train step such a
chain is compiled to one loop forward and one backward: 2 to 6 times as fast for GELU and dropout.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


# -- the switch ---------------------------------------------------------------------------------


@contextlib.contextmanager
def use_cpu_kernels(wanted: bool | None) -> Iterator[None]:
    """Selects the CPU kernels for layers called in this block.

    Args:
        wanted: True compiles loops, as in a train step on CPUs; None does not, but keeps the rest of `kernels.py`, as
            outside of such a block; False leaves everything to Keras.
    """
    previous = getattr(_active, "wanted", None)
    _active.wanted = wanted
    try:
        yield
    finally:
        _active.wanted = previous


def kernels_enabled() -> bool:
    """Whether layers are computed by the library's own kernels: unless they are switched off."""
    return getattr(_active, "wanted", None) is not False


def in_train_step_on_cpu() -> bool:
    """Whether this is the train step of a model that computes on CPUs, with the library's own kernels."""
    return bool(getattr(_active, "wanted", None))


def should_compile(x: Any) -> bool:
    """Whether loops over `x` should be compiled: in a train step on CPUs, if its shape is known."""
    return in_train_step_on_cpu() and x.shape.is_fully_defined()


# -- chains of element-wise operations ------------------------------------------------------------


@functools.cache
def compiles_for_cpus() -> bool:
    """Whether this TensorFlow compiles for CPUs. Its TPU build (2.20) does not: there, a loop on a CPU is an error."""
    with tf.device("CPU:0"):
        try:
            loop(tf.identity)(tf.zeros([1]))
        except tf.errors.NotFoundError:  # "could not find registered transfer manager for platform Host"
            return False
    return True


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors of known shapes, compiled to one loop over memory where possible."""
    return tf.function(function, jit_compile=True, autograph=False)


#: Elements of a piece. 2^16 to 2^20 are equally fast.
PIECE = 1 << 18


def in_pieces(function: Callable[..., Any], dtype: Any = None) -> Callable[..., Any]:
    """An element-wise function of arrays whose length is known only when it runs.

    Args:
        function: a `loop`, called as `function(start, *pieces, *constants) -> piece`: the index of the first element,
            int32, and [PIECE] of each array.
        dtype: of what is returned; None for that of the first array.

    Returns:
        A function `over(x, *arrays, constants=())`: of `x` only the shape is used, which the arrays and the result
        have. It is traced once, however often it is called.
    """

    @tf.function(autograph=False)
    def over_flat(count, arrays, constants):
        pieces = -(-count // PIECE)
        padded = [tf.reshape(tf.pad(x, [[0, pieces * PIECE - count]]), [pieces, PIECE]) for x in arrays]
        found = tf.map_fn(
            lambda piece: function(*piece, *constants),
            (tf.range(pieces) * PIECE, *padded),
            fn_output_signature=tf.TensorSpec([PIECE], dtype or arrays[0].dtype),
            parallel_iterations=8,
        )
        return tf.reshape(found, [-1])[:count]

    def over(x, *arrays, constants=()):
        flat = tuple(tf.reshape(array, [-1]) for array in arrays)
        return tf.reshape(over_flat(tf.size(x), flat, constants), tf.shape(x))

    return over


def compiled_loop(function: Callable[..., Any], plain: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """An element-wise function, compiled to one loop where that is faster: in a train step on CPUs.

    The backward pass computes again what it needs instead of keeping it. `plain` is used everywhere
    else: at inference, in exported models, within a larger piece of XLA, and, where there are constants, for sequences
    whose length changes, because each length would be compiled separately. Without constants these are computed in
    pieces of one size.

    Args:
        function: `function(x, *constants) -> y`, element-wise; `x` and `y` are float tensors of one shape. Only `x`
            receives a gradient, not the constants (a seed, say).
        plain: a function with the same results up to rounding; None for `function` itself.
    """
    plain = plain or function

    def gradient(upstream, x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, *others)
        return tape.gradient(y, x, output_gradients=upstream)

    forward, backward = loop(function), loop(gradient)

    @tf.custom_gradient
    def in_one_piece(x, *others):
        return forward(x, *others), lambda upstream: (backward(upstream, x, *others), *[None] * len(others))

    forward_pieces, backward_pieces = (in_pieces(lambda _, *pieces, f=f: f(*pieces)) for f in (forward, backward))

    @tf.custom_gradient
    def piece_by_piece(x):
        return forward_pieces(x, x), lambda upstream: backward_pieces(x, upstream, x)

    def either(x, *others):
        if should_compile(x):
            return in_one_piece(x, *others)
        return piece_by_piece(x) if in_train_step_on_cpu() and not others else plain(x, *others)

    return either


def dropped(inputs: Any, keep: Any, factor: Any) -> Any:
    """What dropout makes of `inputs`, of their dtype, with what `Dropout.draw` returns."""
    # A product, because its gradient is a product too; two selections would take five times as long.
    # In float32: the loop is faster, and bfloat16 is rounded once.
    wide = tf.float64 if inputs.dtype == tf.float64 else tf.float32
    kept = tf.cast(inputs, wide) * (tf.cast(keep, wide) * tf.cast(factor, wide))
    return tf.cast(kept, inputs.dtype)


def as_graph(function: Callable[..., Any], shapes: Sequence[tuple[Any, Any]] | None = None) -> Callable[..., Any]:
    """`function`, computed as a graph that is made once for all lengths.

    Args:
        function: of tensors or nests of them.
        shapes: a pair (shape, dtype) for each argument, with None for sizes that vary. None for arguments that are
            nests, or of which nothing is known: then there are two graphs or three.
    """
    specs = None if shapes is None else [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
    return tf.function(function, input_signature=specs, reduce_retracing=specs is None, autograph=False)
