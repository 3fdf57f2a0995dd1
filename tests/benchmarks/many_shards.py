"""Measures many shards: the time and memory to open them, and the bytes that each of n hosts reads.

    python tests/benchmarks/many_shards.py [--shards 10 1000 100000] [--hosts 1 2 3 8 64]

The shards that are opened are made up: a manifest, and files that are links to one. The hosts read one epoch of real ones;
the bytes are those of the kernel's count of this process, /proc/self/io.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[1] / "tfrecords"))

from shard_fixtures import StandInTokenizer, random_examples, write_shards

from tfrecords.reading.reader import ShardReader
from tfrecords.shards.manifest import Manifest, Shard


def value_of(file, name):
    return next(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(name))


def make_up(folder, count):
    """A folder of `count` shards that are one file."""
    write_shards(folder, random_examples(100, 128), [100], 128)
    manifest = Manifest.load(folder)
    (one,) = manifest.shards
    shards = [Shard(f"shard-{i:05}-000.tfrecord", 100, one.bytes, one.sha256) for i in range(count)]
    for shard in shards:
        os.symlink(one.file, folder / shard.file)
    manifest.shards[:] = shards
    manifest.save(folder)


def open_all(folder):
    """Opens the shards and reads a batch, in a process of its own; prints what it takes."""

    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, start = value_of("/proc/self/status", "VmRSS"), time.perf_counter()

    def used():
        memory = (value_of("/proc/self/status", "VmHWM") - before) / 1e3
        return f"{time.perf_counter() - start:.2f} s, {time.process_time() - processor:.2f} of the processor, {memory:.0f} MB"

    processor = time.process_time()
    reader = ShardReader(folder)
    opened = used()
    next(iter(reader.dataset(256, seed=0)))  # with blocks of 32 MB, of which up to three are in memory
    print(f"{len(reader.manifest.shards):7,} shards: opened in {opened}; the first batch after {used()}", flush=True)


def read_by(folder, hosts):
    """Prints the most and the least bytes of an epoch that one of `hosts` hosts reads, as a fraction of all."""
    reader, found = ShardReader(folder, StandInTokenizer()), []
    total = sum(shard.bytes for shard in reader.manifest.shards)
    for host in range(hosts):
        before = value_of("/proc/self/io", "rchar")
        for _ in reader.dataset(192, seed=0, epochs=1, num_inputs=hosts, input_index=host):
            pass
        found.append((value_of("/proc/self/io", "rchar") - before) / total)
    print(
        f"{hosts:3} hosts: each reads {min(found):.3f} to {max(found):.3f} of the bytes (1/n is {1 / hosts:.3f})",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, nargs="*", default=[10, 1000, 100_000])
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 2, 3, 8, 64])
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        open_all(arguments.folder)
        return
    for count in arguments.shards:
        with tempfile.TemporaryDirectory() as temporary:
            make_up(Path(temporary), count)
            os.system(f"{sys.executable} {__file__} --folder {temporary}")
    with tempfile.TemporaryDirectory() as temporary:
        write_shards(temporary, random_examples(64_000, 128), [200] * 320, 128)
        for hosts in arguments.hosts:
            read_by(temporary, hosts)


if __name__ == "__main__":
    main()
