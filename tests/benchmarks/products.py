"""Products of a model's shapes in float32 and in bfloat16, and what `precision: auto` chooses here.

    python tests/benchmarks/products.py [--hidden-size 768] [--rows 2048]

TensorFlow on all cores. The ratios are those that `auto` sees: of a training batch of `--rows` tokens,
casts counted, and of a served text of 16 tokens and a batch of 512, whose weights are stored cast.
"""

import argparse
from types import SimpleNamespace

from side_by_side import cpu

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden-size", type=int, default=768)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()

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
