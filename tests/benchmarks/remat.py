"""Peak memory and time of a training step with and without gradient checkpointing (`train.remat`).

    python tests/benchmarks/remat.py [--layers 12 --hidden-size 768 --heads 12 --batch 8 --length 512 --steps 2]

Masked LM of BERT in float32 on random ids, dropout 0.1, AdamW. Each way runs in a process of its own, whose
largest resident size is read; that of the same process before its first step (weights) is printed beside it.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from training_step import RATE, VOCABULARY, make_batch


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(a):
    import keras
    import tensorflow as tf

    from bert_tf.backend import AdamW
    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder
    from bert_tf.objectives import MaskedLM

    keras.utils.set_random_seed(0)
    config = BertConfig(VOCABULARY, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
    model = MaskedLM(BertEncoder(config, pooler=False))
    model.compile(AdamW(RATE, global_clipnorm=1.0), remat=a.measure == "remat", seed=1)
    model.optimizer.build(model.trainable_variables)
    before = megabytes()
    data = tf.data.Dataset.from_tensors(make_batch(a)).repeat()
    model.fit(data, steps_per_epoch=1, verbose=0)
    start = time.perf_counter()
    history = model.fit(data, steps_per_epoch=a.steps, verbose=0)
    seconds = (time.perf_counter() - start) / a.steps
    loss = history.history["loss"][0]
    print(json.dumps({"before_mb": before, "peak_mb": megabytes(), "seconds": seconds, "loss": loss}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"layers": 12, "hidden-size": 768, "heads": 12, "batch": 8, "length": 512, "predictions": 76, "steps": 2}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    parser.add_argument("--measure", choices=["kept", "remat"], help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.measure:
        return measure(a)
    for way in ("kept", "remat"):
        command = [sys.executable, __file__, *sys.argv[1:], "--measure", way]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        r = json.loads(output.splitlines()[-1])
        print(
            f"{way:<6} peak {r['peak_mb']:7.0f} MB, of which {r['before_mb']:5.0f} before the first step; "
            f"{r['seconds']:6.2f} s a step; loss after the first step {r['loss']:.6f}"
        )


if __name__ == "__main__":
    main()
