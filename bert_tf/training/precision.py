"""The precision of a model: float32, or bfloat16 on machines that are faster with it.

bfloat16 products take half the time of float32's on some CPUs (AMD Zen 4, Intel with AMX) and twice the time on others
(Intel with AVX512-BF16 and no AMX). Without bfloat16 instructions a step of training takes 1.4 times as long (AMD
Zen 3). Therefore `precision: auto` measures.
"""

import dataclasses
import statistics
import sys
import time
from pathlib import Path

import tensorflow as tf

from bert_tf.backend import active
from bert_tf.training.strategies import is_chief, is_tpu, of_chief

AUTO, FLOAT32, BFLOAT16 = "auto", "float32", "mixed_bfloat16"
PRECISIONS = (FLOAT32, BFLOAT16, "mixed_float16")

#: The numbers in a matrix below which a product is over before its precision matters.
SMALL = 2**16
#: How much less time bfloat16 must take to be chosen: it rounds.
GAIN = 1.1
#: Multiplications of a timed product; larger batches are timed on some of their rows.
_LARGEST_PRODUCT = 2**28
_SECONDS = 0.2


def resolve(config, run, strategy, model_config, rows):
    """The configuration of a run with `train.precision: auto` replaced, the same on all workers.

    A resumed run keeps its precision on any machine. `rows` is the number of tokens of a batch.
    """
    if config.train.precision != AUTO:
        return config
    chosen = run.recorded_precision()
    if chosen in (None, AUTO):
        tokens = max(1, rows // strategy.num_replicas_in_sync // config.train.accumulation_steps)
        chosen = choose(model_config, (tokens,), is_tpu(strategy)) if is_chief(strategy) else FLOAT32
    chosen = PRECISIONS[round(of_chief(strategy, float(PRECISIONS.index(chosen))))]
    return dataclasses.replace(config, train=dataclasses.replace(config.train, precision=chosen))


def choose(model_config, rows, on_tpu=False, stored=False):
    """The precision that suits this machine, with a line on the console that says why.

    bfloat16 on TPUs and on GPUs of compute capability 8.0 or above. On CPUs the products of the model's feed-forward
    layers are timed in both for a fifth of a second: bfloat16 must be 1.1 times as fast with each number of rows. Of JAX
    on CPUs nothing is timed: float32.

    Args:
        model_config: has `hidden_size` and `intermediate_size`.
        rows: numbers of tokens, of a training batch, or of the requests to be served.
        on_tpu: whether the model runs on TPUs.
        stored: whether the weights are stored in the precision, as in an export; training casts them in each step.

    Returns:
        "float32" or "mixed_bfloat16".
    """
    size = model_config.hidden_size, model_config.intermediate_size
    if on_tpu:
        chosen, why = BFLOAT16, "on a TPU"
    elif accelerator := active.strategies.accelerator_has_bfloat16():
        computes_in_bfloat16, why = accelerator
        chosen = BFLOAT16 if computes_in_bfloat16 else FLOAT32
    elif size[0] * size[1] < SMALL:
        chosen, why = FLOAT32, "the model is too small for bfloat16 to matter"
    elif not has_bfloat16():
        chosen, why = FLOAT32, "this CPU has no bfloat16 instructions"
    else:
        ratios = _ratios(*size, rows, stored)
        chosen = BFLOAT16 if min(ratios) >= GAIN else FLOAT32
        counts = " and ".join(f"{count:,}" for count in rows)
        shown = " and ".join(f"{ratio:.2g}" for ratio in ratios)
        why = f"on this CPU the model's products of {counts} tokens in bfloat16 are {shown} times as fast as in float32"
    print(f"precision: {chosen} ({why})", file=sys.stderr, flush=True)
    return chosen


def has_bfloat16():
    """Whether the CPU has instructions for products of bfloat16, as Linux tells; False elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = {flag for line in lines if line.startswith(("flags", "Features")) for flag in line.split()}
    return bool(flags & {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"})  # the last is ARM's


def _ratios(hidden_size, intermediate_size, rows, stored):
    """How many times as fast bfloat16 is, with each number of rows."""
    return [_ratio(hidden_size, intermediate_size, count, stored, _SECONDS / len(rows)) for count in rows]


def _ratio(hidden_size, intermediate_size, rows, stored, seconds):
    timed = min(rows, max(1, _LARGEST_PRODUCT // (hidden_size * intermediate_size)))
    with tf.device("CPU:0"):
        kernel = tf.Variable(tf.random.stateless_normal([hidden_size, intermediate_size], [1, 2], 0.0, 0.02))
        turns = [_product(kernel, timed, dtype) for dtype in (tf.float32, tf.bfloat16)] + [_cast(kernel)]
        float32, bfloat16, cast = _medians(turns, seconds)
    if stored:
        return float32 / bfloat16
    # In a step of training a matrix is in three products; it is cast before, and its gradient after them.
    products = 3 * rows / timed
    return products * float32 / (products * bfloat16 + 2 * cast)


def _product(kernel, rows, dtype):
    """Function that multiplies `rows` rows with a matrix [in, out] in `dtype`, waits, and returns nothing."""
    inputs = tf.cast(tf.random.stateless_normal([rows, kernel.shape[0]], [3, 4]), dtype)
    kernel = tf.cast(kernel, dtype)
    turn = tf.function(lambda: tf.matmul(inputs, kernel)[0, 0], autograph=False)
    return lambda: turn().numpy()


def _cast(kernel):
    turn = tf.function(lambda: tf.cast(kernel, tf.bfloat16)[0, 0], autograph=False)
    return lambda: turn().numpy()


def _medians(turns, seconds):
    """The median seconds of each function. They run in turn, so that other load slows all of them."""
    for turn in turns:  # the first time compiles
        turn()
    times, end = [[] for _ in turns], time.perf_counter() + seconds
    while not times[0] or time.perf_counter() < end:
        for turn, of_turn in zip(turns, times):
            start = time.perf_counter()
            turn()
            of_turn.append(time.perf_counter() - start)
    return [statistics.median(of_turn) for of_turn in times]
