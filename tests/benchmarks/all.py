"""All speed figures of docs/measured/speed.md by one command, in at most an hour on two cores.

    python tests/benchmarks/all.py --output figures.md [--torch-python PYTHON] [--only serving generation]

Each row is a benchmark of this folder, with the libraries that are installed taking turns; the others are named. A row
says how many times as fast bert_tf is as each of them. The benchmarks of data print their own lines below the table.
TensorFlow runs with oneDNN where the commands of bert-tf turn it on.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from side_by_side import cpu

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "bert_tf/samples/state_of_the_union.jsonl"
BASE = ["--hidden-size", "768", "--layers", "12", "--heads", "12"]
FLOAT32 = ["bert_tf, float32", "Model Garden, float32", "KerasHub, float32", "transformers on PyTorch, float32"]
PRODUCTS = "matrix products alone, float32"
SERVING = ["bert_tf, float32", "ONNX Runtime, float32", "KerasHub, float32", "transformers on PyTorch, float32"]
GENERATION = ["bert_tf in Python", "bert_tf exported", "KerasHub, graph", "transformers on PyTorch", "ctranslate2, float32"]  # fmt: skip


class Row(NamedTuple):
    """What is measured, by which benchmark with which arguments and implementations; the first one is bert_tf's."""

    what: str
    benchmark: str
    arguments: list
    implementations: list
    onednn: bool = False


ROWS = [
    Row("pretraining step, 4 layers of 512", "training_step", ["--steps", "3"], [*FLOAT32, PRODUCTS], True),
    Row("pretraining step, BERT-base, 8 x 128", "training_step", ["--steps", "1", "--batch", "8", *BASE], [FLOAT32[0], PRODUCTS], True),
    Row("text to updates", "end_to_end", ["--steps", "4"], FLOAT32[:2], True),
    Row("causal LM step, 4 layers of 512", "causal_lm_step", ["--steps", "2"], [FLOAT32[0], *FLOAT32[2:]], True),
    Row("span corruption to updates", "span_corruption", ["--steps", "2"], [FLOAT32[0], FLOAT32[3]], True),
    *(
        Row(f"serving {name}, one text of {tokens} tokens", "serving", [*sizes, "--tokens", str(tokens)], SERVING[:2] + SERVING[3:])
        for name, sizes in (("4 layers of 512", []), ("BERT-base", BASE))
        for tokens in (8, 32, 128)
    ),
    Row("serving 4 layers of 512, one text of 8 tokens, 8 clients", "serving", ["--tokens", "8", "--clients", "8"], SERVING[:2] + SERVING[3:]),
    Row("serving 4 layers of 512, batches of 32", "serving", ["--batch", "32"], [SERVING[0], *SERVING[2:]]),
    Row("GPT-2 124M, 1 prompt, 16 new tokens", "generation", ["--new-tokens", "16"], GENERATION, True),
    Row("GPT-2 124M, 8 prompts, 16 new tokens", "generation", ["--batch", "8", "--new-tokens", "16"], GENERATION, True),
    Row("T5-base, 4 beams, 16 new tokens", "generation", ["--model", "t5", "--beams", "4", "--new-tokens", "16"], GENERATION, True),
]  # fmt: skip
DATA = {
    "text to shards": ["text_to_shards", str(SAMPLE), "--tokenizer", "VOCABULARY", "--repeat", "10"],
    "reading and masking": ["reading"],
    "many shards": ["many_shards"],
    "WordPiece": ["wordpiece"],
    "subwords": ["subwords"],
    "products": ["products"],
}


def run(command, onednn=False):
    """(what a benchmark printed, what it said of implementations that are not there, seconds)."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **({"TF_ENABLE_ONEDNN_OPTS": "1"} if onednn else {})}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, HERE / f"{command[0]}.py", *command[1:]], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        return f"failed: {done.stderr.strip()[-300:]}", [], time.monotonic() - start
    missing = [line.split(":")[0] for line in done.stderr.splitlines() if ": not measured" in line]
    return done.stdout.strip(), missing, time.monotonic() - start


def table_row(row, rounds, torch_python):
    """The line of a row in the table, and the implementations that could not be measured."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        options = ["--rounds", str(rounds), "--torch-python", torch_python, "--json", str(file)]
        printed, missing, seconds = run(
            [row.benchmark, *row.arguments, *options, "--only", *row.implementations], row.onednn
        )
        if not file.exists():
            return f"| {row.what} | {printed} | | | {seconds:.0f} s |", missing
        figures = json.loads(file.read_text(encoding="utf-8"))
    first = figures.get(row.implementations[0])
    if first is None:
        return f"| {row.what} | not measured | | | {seconds:.0f} s |", missing
    others = [f"{name} {first['rate'] / other['rate']:.2f}" for name, other in figures.items() if other is not first]
    more = ", ".join(f"{name} {value}" for name, value in first["more"].items())
    rate = f"{first['rate']:,.1f} {first['unit']}/s, {first['peak_gigabytes']:.1f} GB"
    return f"| {row.what} | {rate} | {'; '.join(others)} | {more} | {seconds:.0f} s |", missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the file of the tables; written row by row")
    names = sorted({row.benchmark for row in ROWS} | {command[0] for command in DATA.values()})
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="BENCHMARK", help="instead of all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch-python", default=sys.executable, help="the Python that has PyTorch and ctranslate2")
    arguments = parser.parse_args()
    from serving import vocabulary_file

    with open(arguments.output, "w", encoding="utf-8") as file:

        def say(line):
            print(line, flush=True)
            print(line, file=file, flush=True)

        say(f"{datetime.date.today()}, {cpu()}\n")
        say("| what | bert_tf, peak memory | times as fast as | more | measured in |\n|---|---|---|---|---|")
        absent = set()
        for row in ROWS:
            if row.benchmark in arguments.only:
                line, missing = table_row(row, arguments.rounds, arguments.torch_python)
                absent |= set(missing)
                say(line)
        if absent:
            say(f"\nnot measured here, because they are not installed or failed: {', '.join(sorted(absent))}")
        for what, command in DATA.items():
            if command[0] in arguments.only:
                printed, _, _ = run([str(vocabulary_file()) if part == "VOCABULARY" else part for part in command])
                say(f"\n{what}\n\n{printed}")


if __name__ == "__main__":
    main()
