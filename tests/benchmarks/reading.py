"""Examples per second of reading and masking.

Run as `python tests/benchmarks/reading.py [--shards FOLDER]`.

Without --shards, full sequences of random ids are written to a temporary folder first. Each line
is the best of several measurements, since other work on the machine only ever slows one down; the
CPU time of an example suffers least from it.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "tfrecords"))
from shard_fixtures import StandInTokenizer, random_examples, write_shards

from bert_tf.tokenizers import load_tokenizer
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reading.reader import ShardReader
from tfrecords.schema import TOKENIZER_FOLDER


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=Path, help="a folder that `bert-tf shards` wrote")
    parser.add_argument("--examples", type=int, default=150_000, help="to write without --shards")
    parser.add_argument("--length", type=int, default=128, help="to write without --shards")
    parser.add_argument("--vocabulary", type=int, default=30522, help="of what is written")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.shards:
            folder = arguments.shards
            tokenizer = load_tokenizer(folder / TOKENIZER_FOLDER)
        else:
            folder, tokenizer = Path(temporary), StandInTokenizer(arguments.vocabulary)
            print(f"writing {arguments.examples:,} examples ...", flush=True)
            write_random_shards(folder, arguments)
        measure_all(ShardReader(folder, tokenizer), tokenizer, arguments)


def write_random_shards(folder, arguments):
    distinct = random_examples(
        min(10_000, arguments.examples), arguments.length, vocabulary_size=arguments.vocabulary, full=True
    )
    examples = [distinct[i % len(distinct)] for i in range(arguments.examples)]
    size = -(-len(examples) // 10)
    sizes = [size] * (len(examples) // size)
    if len(examples) % size:
        sizes.append(len(examples) % size)
    write_shards(folder, examples, sizes, arguments.length, arguments.vocabulary)


def measure_all(reader, tokenizer, arguments):
    batch = arguments.batch
    corruptions = {
        "tokens": MaskedLMCorruption(tokenizer, MaskingConfig()),
        "whole words": MaskedLMCorruption(tokenizer, MaskingConfig(strategy="whole_word")),
        "n-grams": MaskedLMCorruption(tokenizer, MaskingConfig(strategy="ngram")),
        "spans": MaskedLMCorruption(tokenizer, MaskingConfig(strategy="span")),
    }
    datasets = {"reading": reader.dataset(batch, seed=1)}
    one = next(iter(reader.dataset(batch, seed=1)))
    for name, corrupt in corruptions.items():
        alone = tf.data.Dataset.from_tensors(one).repeat()
        alone = alone.map(lambda b, corrupt=corrupt: corrupt(b, 1), tf.data.AUTOTUNE)
        options = tf.data.Options()
        options.threading.max_intra_op_parallelism = 1
        datasets[f"masking {name}"] = alone.prefetch(tf.data.AUTOTUNE).with_options(options)
        datasets[f"reading and masking {name}"] = reader.dataset(batch, seed=1, corrupt=corrupt)
    print(f"{reader.num_examples:,} examples of length {reader.sequence_length}, batch {batch}, {os.cpu_count()} cores")
    for name, dataset in datasets.items():
        runs = [measure(dataset, batch, arguments.seconds) for _ in range(arguments.repeats)]
        rate, cost = max(run[0] for run in runs), min(run[1] for run in runs)
        print(f"{name:32} {rate:9,.0f} examples/s {1e6 * cost:6.2f} CPU us each", flush=True)


def measure(dataset, batch, seconds):
    """Examples per second and CPU seconds per example, after the first batches are there."""
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    start, cpu, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            next(iterator)
        count += 20 * batch
    return count / (time.perf_counter() - start), (time.process_time() - cpu) / count


if __name__ == "__main__":
    main()
