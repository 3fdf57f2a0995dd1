"""How long one waits for a first answer, and for the next ones, in how much memory: the commands, Python, an export, and
transformers.

    python tests/benchmarks/starting.py MODEL [--rounds 3] [--text "A quiet triumph."] [--torch-python PYTHON]

MODEL is a fine-tuned run, or a directory of Hugging Face with a classifier; only that has a row for transformers. Each round
starts each of them anew. Medians, in seconds; a later answer is the median of the 10th to the 30th. Memory is the most that
a process had, in GB: of a library when it is imported, when the model is open, and at the end.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from side_by_side import cpu

ANSWERS = """
import json, resource, statistics, sys, time
started, marks, memory, model, text = time.perf_counter(), [], [], *sys.argv[1:]
def mark():
    marks.append(time.perf_counter() - started)
    memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
{library}
mark()
{open}
mark()
for _ in range(30):
    {answer}
    mark()
later = statistics.median(end - begin for begin, end in zip(marks[10:], marks[11:]))
print(json.dumps([marks[1], marks[2] - marks[1], later, *memory[:2], memory[-1]]))
"""
WAYS = {
    "bert_tf.load(MODEL).predict(text)": (
        "import bert_tf, tensorflow",
        "opened = bert_tf.load(model); opened.model",
        "opened.predict(text)",
    ),
    "bert_tf.load(MODEL).embed(text)": (
        "import bert_tf, tensorflow",
        "opened = bert_tf.load(model); opened.encoder",
        "opened.embed(text)",
    ),
    "of 32 such texts": (
        "import bert_tf, tensorflow",
        "opened = bert_tf.load(model); opened.encoder",
        "opened.embed([text] * 32)",
    ),
    "the SavedModel, called in Python": (
        "import tensorflow as tf, tensorflow_text",
        "served = tf.saved_model.load(model).signatures['serving_default']",
        "served(text=tf.constant([text]))",
    ),
    "transformers on PyTorch": (
        "import transformers, torch",
        "answer = transformers.pipeline('text-classification', model)",
        "answer(text)",
    ),
}


def in_python(python, way, model, text):
    """Seconds until it is opened, until the first answer, of a later one; memory when imported, when opened, at the end."""
    library, opening, answer = WAYS[way]
    code = ANSWERS.format(library=library, open=opening, answer=answer)
    done = subprocess.run([python, "-c", code, model, text], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def by_command(*arguments):
    """Seconds and memory of a command of bert-tf."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "bert_tf.cli.main", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bert-tf {arguments[0]} failed")
    return [None, time.perf_counter() - start, None, None, None, usage.ru_maxrss / 1e6]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--text", default="A quiet triumph.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch-python")
    a = parser.parse_args()
    found = {"bert-tf export MODEL": [], "bert-tf predict MODEL text": []} | {way: [] for way in WAYS}
    for _ in range(a.rounds):
        with tempfile.TemporaryDirectory() as folder:
            found["bert-tf export MODEL"].append(by_command("export", a.model, "--output", f"{folder}/export"))
            found["bert-tf predict MODEL text"].append(by_command("predict", a.model, a.text))
            for way in WAYS:
                python = a.torch_python if "PyTorch" in way else sys.executable
                if python:
                    model = f"{folder}/export/1" if "SavedModel" in way else a.model
                    found[way].append(in_python(python, way, model, a.text))
    print(
        f"{cpu()}\n\n| | opened | first answer after that | a later answer | GB when imported | opened | at the end |\n"
        "|---|---|---|---|---|---|---|"
    )
    for way, rounds in found.items():
        cells = ["" if None in column else f"{statistics.median(column):.3g}" for column in zip(*rounds)]
        if cells:
            print(f"| {way} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
