"""What each CPU kernel of `bert_tf/backend/tensorflow/` brings: a step, or served texts, with and without it.

    python tests/benchmarks/kernels.py pretraining [--rounds 12] [--only "with all" "without the loop of GELU"]
    python tests/benchmarks/kernels.py finetuning
    python tests/benchmarks/kernels.py serving [--batch 32]

Masked LM on rows of one length, as `training_step.py`; a classifier on batches whose lengths change, as fine-tuning has
them; an exported classifier, as `serving.py`, without oneDNN, where TensorFlow leaves it off. The implementations take
turns; the second table has the mean of the rounds' ratios to "with all" and its 95 % interval: .90 says that without this
kernel it is .90 times as fast. Each takes about 1.7 GB.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

from serving import bert_tf as serve
from side_by_side import main, model_arguments, paced
from training_step import RATE, VOCABULARY
from training_step import bert_tf as pretrain

ALL = "with all"


def plain_functions(*names):
    def switch(backend):
        for name in names:
            setattr(backend, name, getattr(backend.plain, name))

    return switch


def plain_adam(backend):
    backend.active.apply_adam = lambda optimizer, gradient, *more: backend.plain.apply_adam(
        optimizer, backend.active.dense(gradient), *more
    )


def plain_dropout(backend):
    randomness = backend.tensorflow.randomness
    randomness.in_train_step_on_cpu = lambda: False
    randomness._dropped_in_one_piece = randomness.dropped


def nothing_for_changing_lengths(backend):
    """Without the functions for batches whose length is known only when they come."""
    loops, randomness = backend.tensorflow.loops, backend.tensorflow.randomness
    randomness._kept_in_pieces = lambda x, constants: randomness._kept(x, *constants)

    def compiled_loop(function, plain=None):
        fast, slow = loops.compiled_loop(function, plain), plain or function
        return lambda x, *others: (fast if x.shape.is_fully_defined() else slow)(x, *others)

    backend.compiled_loop = compiled_loop


#: Kernel -> function that leaves it out, called before any layer is imported.
KERNELS = {
    "Dense as one product": plain_functions("Dense"),
    "the product with the transposed table": plain_functions("product_with_transposed"),
    "argmax": plain_functions("largest"),
    "cross entropy": plain_functions("cross_entropy"),
    "the loop of GELU": plain_functions("compiled_loop"),
    "the loops of dropout": plain_dropout,
    "Adam as one operation": plain_adam,
    "functions for changing lengths": nothing_for_changing_lengths,
    "all of these": lambda backend: [KERNELS[name](backend) for name in KERNELS if name != "all of these"],
}


def finetune(a):
    import numpy as np
    import tensorflow as tf

    from bert_tf.backend import AdamW
    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder
    from bert_tf.tasks.heads import Classifier

    model = Classifier(
        BertEncoder(BertConfig(VOCABULARY, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)), 2, dropout=0.1
    )
    model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0))
    draw, sizes = np.random.default_rng(0), (32, 64, 96, a.length)

    def batches():
        while True:
            for size in sizes:
                ids = draw.integers(1000, VOCABULARY, (a.batch, size), dtype=np.int32)
                yield {
                    "token_ids": ids,
                    "segment_ids": np.zeros_like(ids),
                    "padding_mask": np.ones(ids.shape, bool),
                    "labels": ids[:, 0] % 2,
                    "label_weights": np.ones(a.batch, np.float32),
                }

    rows = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
    signature = {name: tf.TensorSpec([None, None], dtype) for name, dtype in rows.items()}
    signature |= {"labels": tf.TensorSpec([None], tf.int32), "label_weights": tf.TensorSpec([None], tf.float32)}
    data = tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(2)
    turn = paced(model, data, len(sizes))
    return "tokens", lambda: (turn(), a.batch * sum(sizes))[1]


def workload(a):
    if a.workload == "serving":
        return serve("float32")(a)
    return finetune(a) if a.workload == "finetuning" else pretrain("float32")(a)


def without(kernel):
    def setup(a):
        import bert_tf.backend

        if kernel:
            KERNELS[kernel](bert_tf.backend)
        return workload(a)

    return setup


def print_intervals(figures):
    """Of the ratios of each round, because all implementations are slowed alike within one."""
    print("\n| times as fast as with all | by the clock | by the processor's seconds |\n|---|---|---|")
    for name, row in figures.items():
        if name != ALL and len(row["rates"]) > 1:
            print(
                f"| {name} | {' | '.join(_interval(row[key], figures[ALL][key]) for key in ('rates', 'cpu_rates'))} |"
            )


def _interval(rates, base):
    ratios = [one / other for one, other in zip(rates, base)]
    return f"{statistics.mean(ratios):.3f} ± {1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5:.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=["pretraining", "finetuning", "serving"])
    model_arguments(parser, batch=16)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--predictions", type=int, default=20)
    parser.set_defaults(tokens=None, clients=1, intra_op=0)
    if parser.parse_known_args()[0].workload != "serving":
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    with tempfile.TemporaryDirectory() as folder:
        parser.set_defaults(json=Path(folder) / "figures.json")
        main({ALL: without(None), **{f"without {name}": without(name) for name in KERNELS}}, parser, reference=(ALL,))
        print_intervals(json.loads((Path(folder) / "figures.json").read_text()))
