"""Products of a model's shapes in float32 and in bfloat16, and what `precision: auto` chooses here.

    python tests/benchmarks/products.py [--hidden-size 768] [--rows 2048]
    python tests/benchmarks/products.py --layouts 12   # products of one text with the weights of 12 layers

TensorFlow on all cores. The ratios are those that `auto` sees: of a training batch of `--rows` tokens,
casts counted, and of a served text of 16 tokens and a batch of 512, whose weights are stored cast. `--layouts` times the
products of one text by how the weights lie in memory: set TF_ENABLE_ONEDNN_OPTS for the kernels that a server has.
"""

import argparse
import statistics
import time
from types import SimpleNamespace

from side_by_side import cpu


def layouts(hidden, count, rows_of_texts):
    """Products of few rows with many weights, ms for all of them, by how the weights lie in memory.

    Each weight is read from memory: together they are larger than the caches, as those of a model are.
    """
    import numpy as np
    import tensorflow as tf

    def in_blocks(count):  # of columns, as a batched product
        return (
            lambda w: np.ascontiguousarray(w.reshape(len(w), count, -1).transpose(1, 0, 2)),
            lambda x, w: tf.reshape(tf.transpose(tf.matmul(x[None], w), [1, 0, 2]), [x.shape[0], -1]),
        )

    kinds = {  # how a weight is stored, how it is multiplied
        "as it is": (lambda w: w, tf.matmul),
        "transposed": (lambda w: w.T.copy(), lambda x, w: tf.transpose(tf.matmul(w, x, transpose_b=True))),
        "2 blocks": in_blocks(2),
        "8 blocks": in_blocks(8),
    }
    draw = np.random.default_rng(0)
    print(f"| product, rows | {' | '.join(kinds)} |\n|---{'|---' * len(kinds)}|")
    for inputs, outputs, many in (
        (hidden, 4 * hidden, count),
        (4 * hidden, hidden, count),
        (hidden, hidden, 4 * count),
        (hidden, 3 * hidden, count),
    ):
        weights = [draw.normal(size=(inputs, outputs)).astype("float32") for _ in range(many)]
        for rows in rows_of_texts:
            x = tf.constant(draw.normal(size=(rows, inputs)), tf.float32)
            turns = [
                _all_products(x, [tf.constant(store(w)) for w in weights], multiply)
                for store, multiply in kinds.values()
            ]
            times = [[] for _ in turns]
            for _ in range(15):
                for turn, seconds in zip(turns, times):
                    start = time.perf_counter()
                    turn().numpy()
                    seconds.append(time.perf_counter() - start)
            cells = " | ".join(f"{1000 * statistics.median(seconds):.1f}" for seconds in times)
            print(f"| {many} x {inputs} -> {outputs}, {rows} | {cells} |", flush=True)


def _all_products(x, weights, multiply):
    """Function of all products one after the other."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def turn():
        y = multiply(x, weights[0])
        for weight in weights[1:]:
            y = multiply(x + 0.0 * y[0, 0], weight)  # after the one before, or TensorFlow would leave that out
        return y

    turn()
    return turn


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden-size", type=int, default=768)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--layouts", type=int, metavar="LAYERS", help="instead: layouts, for so many layers")
    arguments = parser.parse_args()
    if arguments.layouts:
        print(f"CPU: {cpu()}")
        layouts(arguments.hidden_size, arguments.layouts, (8, 32, 128))
        raise SystemExit

    import tensorflow as tf

    from bert_tf.training import precision

    hidden, rows = arguments.hidden_size, arguments.rows
    model = SimpleNamespace(hidden_size=hidden, intermediate_size=4 * hidden)
    kernel = tf.Variable(tf.random.normal([hidden, 4 * hidden]))
    turns = [precision._product(kernel, rows, dtype) for dtype in (tf.float32, tf.bfloat16)]
    seconds = precision._medians(turns, arguments.seconds)
    print(f"CPU: {cpu()}; instructions for bfloat16: {precision.has_bfloat16()}")
    for name, second in zip(("float32", "bfloat16"), seconds):
        print(f"{name:<9} {2 * rows * hidden * 4 * hidden / second / 1e9:7.0f} GFLOP/s")
    for what, counts, stored in (("training", (rows,), False), ("serving", (16, 512), True)):
        ratios = precision._ratios(hidden, 4 * hidden, counts, stored)
        print(f"{what}: bfloat16 is {' and '.join(f'{ratio:.2f}' for ratio in ratios)} times as fast in products")
        precision.choose(model, counts, stored=stored)
