"""Measures text to shards: speed with and without the start of processes, and peak memory.

    python tests/benchmarks/text_to_shards.py corpus.jsonl --tokenizer vocab.txt --workers 2 --repeat 10

`--repeat` reads the corpus several times over. `--beam` gives the work to an Apache Beam pipeline in place of our
processes, with these options: "--direct_num_workers=2 --direct_running_mode=multi_processing". Memory is sampled: what each process has for itself,
added up, and once the files that all have mapped (TensorFlow's libraries).
"""

import argparse
import resource
import shutil
import tempfile
import threading
import time
from pathlib import Path

from bert_tf.tokenizers import load_tokenizer
from tfrecords.config import ShardsConfig
from tfrecords.corpus.files import find_files
from tfrecords.shards.statistics import report
from tfrecords.shards.writer import write_shards


class Watch(threading.Thread):
    """Samples the memory of this process and its children, and notes when the first shard is there."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.memory, self.own = 0, 0  # bytes at the peak: all in all, and of that what is in no file
        self.first = None  # (time, shards) at the first sight of a shard
        self._folder, self._done = folder, threading.Event()

    def run(self):
        while not self._done.wait(0.2):
            samples = [_memory(pid) for pid in ("self", *_children())]
            own = sum(own for own, _ in samples)
            memory = own + max(mapped for _, mapped in samples)
            self.memory, self.own = max((self.memory, self.own), (memory, own))
            shards = len(list(self._folder.glob("shard-*")))
            if shards and not self.first:
                self.first = time.perf_counter(), shards

    def stop(self):
        self._done.set()
        self.join()


def _cpu_seconds():
    """Of this process and the children that have ended; what else the machine does leaves it alone."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _children():
    return [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]


def _memory(pid):
    """(its own, mapped files) in bytes; zeros for a process that has just ended.

    From the kernel's counters: adding up pages, as smaps does, would cost a fifth of the speed that is measured.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    values = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss")}
    return values.get("RssAnon:", 0), values.get("RssFile:", 0) + values.get("RssShmem:", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--tokenizer", required=True, help="folder or vocab.txt")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--beam", help="options of the pipeline, in one argument; then --workers counts for nothing")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--format", default="segment_pair")
    parser.add_argument("--shard-bytes", type=int, default=ShardsConfig.shard_bytes)
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.tokenizer)
    packing = {"sequence_length": arguments.sequence_length, "shard_bytes": arguments.shard_bytes}
    config = ShardsConfig(format=arguments.format, **packing)

    scratch = Path(tempfile.mkdtemp(prefix="text_to_shards"))
    try:
        (scratch / "corpus").mkdir()
        for number, file in enumerate(find_files(arguments.corpus) * arguments.repeat):
            shutil.copyfile(file.path, scratch / "corpus" / f"{number:04}-{file.path.name}")
        output = scratch / "shards"
        watch = Watch(output)
        watch.start()
        start, cpu = time.perf_counter(), _cpu_seconds()
        hands = {"workers": arguments.workers} if arguments.beam is None else {"beam": arguments.beam.split()}
        manifest = write_shards(scratch / "corpus", output, tokenizer, config, progress=False, **hands)
        end, cpu = time.perf_counter(), _cpu_seconds() - cpu
        watch.stop()
    finally:
        shutil.rmtree(scratch)
    size = manifest.counts["text_bytes"] / 1e6
    print(*report(manifest.counts, manifest.sequence_length), sep="\n")
    written = sum(shard.bytes for shard in manifest.shards) / 1e6
    print(f"{len(manifest.shards):,} shards of {written:.1f} MB together, {written / size:.2f} of the text")
    print(f"{size:.1f} MB of text in {end - start:.1f} s: {size / (end - start):.1f} MB/s, "
          f"{manifest.examples / (end - start):,.0f} examples/s, {hands}")  # fmt: skip
    print(f"{cpu:.1f} s of CPU time in all processes, their start included: {size / cpu:.1f} MB a CPU second")
    if watch.first and watch.first[1] < len(manifest.shards):
        left = size * (1 - watch.first[1] / len(manifest.shards))
        print(f"after the first shard, at {watch.first[0] - start:.1f} s: {left / (end - watch.first[0]):.1f} MB/s")
    print(f"peak memory of all processes: {watch.memory / 1e6:,.0f} MB, {watch.own / 1e6:,.0f} MB of it in no file")


if __name__ == "__main__":
    main()
