"""How long pretraining waits for data: from shards of real text, masked as they are read.

    python tests/benchmarks/data_wait.py [--text FILE.jsonl] [--hidden-size 768 --layers 12 --heads 12]

Measured twice. How long one waits: the time in `next` of the shards' iterator before each step (of a `fit` on a
batch held in memory, so that nothing else is waited for). And all that reading costs, also what it takes from the
step that it runs beside: `fit` on the shards against `fit` on that batch, in turns.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from end_to_end import SAMPLE, read_documents, trained_vocabulary
from side_by_side import model_arguments, paced

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=SAMPLE, help=".jsonl with a field text")
    parser.add_argument("--documents", type=int, default=40)
    model_arguments(parser, batch=16)
    parser.add_argument("--predictions", type=int, default=20, help="of each row")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--turns", type=int, default=9)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(a, Path(folder))


def measure(a, folder):
    import tensorflow as tf

    from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
    from tfrecords.reading.reader import ShardReader
    from tfrecords.shards.writer import ShardsConfig, write_shards

    documents = read_documents(a)
    tokenizer = trained_vocabulary(documents)
    for number, text in enumerate(documents):
        (folder / f"{number:04}.txt").write_text(text, encoding="utf-8")
    write_shards(folder, folder / "shards", tokenizer, ShardsConfig(sequence_length=a.length), progress=False)
    reader = ShardReader(folder / "shards", tokenizer)
    corrupt = MaskedLMCorruption(tokenizer, MaskingConfig(max_predictions=a.predictions))
    data = reader.dataset(a.batch, seed=0, corrupt=corrupt)
    held = tf.data.Dataset.from_tensors(next(iter(data))).repeat()

    step, batches = paced(new_model(a, tokenizer), held, 1), iter(data)
    waits, whole = [], []
    for number in range(-3, a.steps * a.turns):  # the first trace and fill the buffers
        start = time.perf_counter()
        next(batches)
        waited = time.perf_counter() - start
        step()
        if number >= 0:
            waits.append(waited)
            whole.append(time.perf_counter() - start)
    share = 100 * sum(waits) / sum(whole)
    print(f"waiting in next: {1e3 * statistics.median(waits):.2f} ms of a step of {1e3 * statistics.median(whole):.1f} ms "
          f"(medians), the longest {1e3 * max(waits):.1f} ms; {share:.2f} % of the time of {len(waits)} steps")  # fmt: skip

    turns = {
        "shards": paced(new_model(a, tokenizer), data, a.steps),
        "memory": paced(new_model(a, tokenizer), held, a.steps),
    }
    clocks = {"time": time.perf_counter, "CPU time": time.process_time}
    found = {(name, clock): [] for name in turns for clock in clocks}
    for number in range(a.turns + 1):
        for name, turn in turns.items():
            start = {clock: read() for clock, read in clocks.items()}
            turn()
            if number:  # the first traces and fills the buffers
                for clock, read in clocks.items():
                    found[name, clock].append((read() - start[clock]) / a.steps)
    for clock in clocks:
        shards, memory = found["shards", clock], found["memory", clock]
        ratios = sorted(100 * (x / y - 1) for x, y in zip(shards, memory))
        print(f"{clock} of a step of fit: {1e3 * statistics.median(shards):.1f} ms from shards, "
              f"{1e3 * statistics.median(memory):.1f} ms from memory; {statistics.median(ratios):+.1f} % "
              f"(turn by turn {ratios[0]:+.1f} to {ratios[-1]:+.1f} %)")  # fmt: skip


def new_model(a, tokenizer):
    from bert_tf.backend import AdamW
    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder
    from bert_tf.objectives import MaskedLM

    config = BertConfig(tokenizer.vocabulary_size, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
    model = MaskedLM(BertEncoder(config, pooler=False, dtype="mixed_bfloat16"))
    model.compile(optimizer=AdamW(1e-4, global_clipnorm=1.0))
    return model


if __name__ == "__main__":
    main()
