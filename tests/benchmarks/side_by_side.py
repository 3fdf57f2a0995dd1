"""Implementations side by side: each in a process of its own, taking turns.

A benchmark defines functions from its arguments to (name of the unit, function that does one turn and returns how many
units it did) and calls `main`; a third function may return more to print, by name. Each implementation is set up in its
own process, does one turn that is not counted, and then they take turns: whatever else the machine does slows all of
them alike, so that their ratios hold where the absolute figures do not. CPU seconds are those of all threads of the
process, and of processes that it started: on a machine that others use too they vary less, but count threads that wait
in a loop.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path


def main(implementations, parser, reference):
    """Runs the benchmark, or one worker of it.

    Args:
        implementations: name -> function from the parsed arguments to (unit, turn[, more]).
        parser: the benchmark's own arguments; those of this module are added.
        reference: what the ratios are to: 1.00 for the first of these names that ran.
    """
    parser.add_argument("--only", nargs="+", choices=implementations, metavar="NAME", help="instead of all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cores", default=None, help="as taskset has it, e.g. 0,1")
    parser.add_argument(
        "--torch-python", default=sys.executable, help="the Python that has PyTorch, ctranslate2 and gensim"
    )
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        _work(implementations[arguments.worker], arguments)
        return
    workers = [_Worker(name, arguments) for name in arguments.only or implementations]
    workers = [worker for worker in workers if worker.start()]
    print(f"started: {', '.join(worker.name for worker in workers)}", file=sys.stderr, flush=True)
    for number in range(arguments.rounds):
        for worker in workers:
            time.sleep(0.5)  # threads of the one before still look for work for a while
            worker.turn()
        print(f"\rround {number + 1} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    found = {worker.name: worker.close() for worker in workers}
    base = next((found[name] for name in reference if name in found), None)
    _print(found, base)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


def model_arguments(parser, batch):
    """Adds the sizes of the model and of its batches."""
    for name, default in [("hidden-size", 512), ("layers", 4), ("heads", 8), ("batch", batch), ("length", 128)]:
        parser.add_argument(f"--{name}", type=int, default=default)


def paced(model, data, steps):
    """Function that lets one `fit` of a Keras model on endless data do so many steps more.

    A `fit` a turn would begin reading anew each time, as no training does.
    """
    import keras

    go, done = threading.Semaphore(0), threading.Semaphore(0)

    class Pace(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            go.acquire()

        def on_train_batch_end(self, batch, logs=None):
            done.release()

    def fit():
        try:
            model.fit(data, steps_per_epoch=1_000_000_000, verbose=0, callbacks=[Pace()])
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # or the turn would wait for ever

    threading.Thread(target=fit, daemon=True).start()

    def turn():
        for _ in range(steps):
            go.release()
        for _ in range(steps):
            done.acquire()

    return turn


class _Worker:
    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.seconds, self.cpu_seconds, self.units = [], [], []

    def start(self):
        elsewhere = any(peer in self.name for peer in ("PyTorch", "ctranslate2", "gensim"))
        python = self.arguments.torch_python if elsewhere else sys.executable
        command = [python, *sys.argv, "--worker", self.name]
        if self.arguments.cores:
            command = ["taskset", "-c", self.arguments.cores, *command]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.ready = self._answer()
        if self.ready is None:
            print(f"{self.name}: not measured: {self.process.stderr.read().strip()[-300:]}", file=sys.stderr)
        return self.ready is not None

    def turn(self):
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.seconds.append(answer["seconds"])
        self.cpu_seconds.append(answer["cpu_seconds"])
        self.units.append(answer["units"])
        self.peak = answer["peak"]

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        return None

    def close(self):
        self.process.stdin.close()
        more = self._answer()
        self.process.wait()
        rates, cpu_rates = (
            [units / seconds for units, seconds in zip(self.units, times)] for times in (self.seconds, self.cpu_seconds)
        )
        return {
            "unit": self.ready["unit"],
            "rate": statistics.median(rates),
            "rates": rates,
            "rate_per_cpu": statistics.median(cpu_rates),
            "cpu_rates": cpu_rates,
            "seconds_per_turn": statistics.median(self.seconds),
            "start_seconds": self.ready["seconds"],
            "peak_gigabytes": self.peak,
            "more": more,
        }


def _work(setup, arguments):
    start = time.perf_counter()
    unit, turn, *more = setup(arguments)
    turn()
    print("@" + json.dumps({"unit": unit, "seconds": time.perf_counter() - start}), flush=True)
    for _ in sys.stdin:
        start, cpu_start = time.perf_counter(), _cpu_seconds()
        units = turn()
        seconds, cpu_seconds = time.perf_counter() - start, _cpu_seconds() - cpu_start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            "@" + json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "units": units, "peak": peak}), flush=True
        )
    print("@" + json.dumps(more[0]() if more else {}), flush=True)
    os._exit(0)  # whatever threads still wait


def _cpu_seconds():
    """Of this process, and of those that it started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu():
    """The CPU as Linux names it, with the instructions for bfloat16 that it has."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    flags = fields.get("flags", fields.get("Features", "")).split()
    known = [flag for flag in flags if flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16")]
    name = fields.get("model name", os.uname().machine)
    return f"{name}, family {fields.get('cpu family')}, model {fields.get('model')}, {os.cpu_count()} cores, {' '.join(known)}"


def _print(found, base):
    print(f"CPU: {cpu()}\n")
    first = next(iter(found.values()))
    unit = first["unit"]
    columns = [
        f"{unit}/s",
        "ratio",
        f"{unit}/CPU second",
        "ratio",
        "ms a turn",
        "first turn after",
        "peak memory",
        *first["more"],
    ]
    print("| |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name, row in found.items():
        cells = [
            *(
                cell
                for key in ("rate", "rate_per_cpu")
                for cell in (_rounded(row[key]), f"{row[key] / base[key]:.2f}" if base else "")
            ),
            f"{1000 * row['seconds_per_turn']:,.1f}",
            f"{row['start_seconds']:.0f} s",
            f"{row['peak_gigabytes']:.1f} GB",
            *map(str, row["more"].values()),
        ]
        print(f"| {name} |", " | ".join(cells), "|")


def _rounded(rate):
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
