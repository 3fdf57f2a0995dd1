"""How long one waits for a first answer, and for the next ones: the command, Python, an export, and transformers.

    python tests/benchmarks/starting.py MODEL [--rounds 3] [--text "A quiet triumph."] [--torch-python PYTHON]

MODEL is a fine-tuned run, or a directory of Hugging Face with a classifier; only that has a row for transformers. Each round
starts each of them anew. Medians, in seconds; a later answer is the median of the 10th to the 30th.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

from side_by_side import cpu

ANSWERS = """
import json, statistics, sys, time
started, marks, model, text = time.perf_counter(), [], *sys.argv[1:]
def mark():
    marks.append(time.perf_counter() - started)
{open}
mark()
for _ in range(30):
    {answer}
    mark()
later = statistics.median(end - begin for begin, end in zip(marks[9:], marks[10:]))
print(json.dumps([marks[0], marks[1] - marks[0], later]))
"""
WAYS = {
    "bert_tf.load(MODEL).predict(text)": ("import bert_tf; opened = bert_tf.load(model)", "opened.predict(text)"),
    "the SavedModel, called in Python": (
        "import tensorflow as tf, tensorflow_text; served = tf.saved_model.load(model).signatures['serving_default']",
        "served(text=tf.constant([text]))",
    ),
    "transformers on PyTorch": (
        "import transformers; answer = transformers.pipeline('text-classification', model)",
        "answer(text)",
    ),
}


def seconds(python, way, model, text):
    """[until it is opened, until the first answer, a later one]."""
    opening, answer = WAYS[way]
    code = ANSWERS.format(open=opening, answer=answer)
    done = subprocess.run([python, "-c", code, model, text], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--text", default="A quiet triumph.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch-python")
    a = parser.parse_args()
    command = [sys.executable, "-m", "bert_tf.cli.main"]
    found = {"bert-tf predict MODEL text": []} | {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*command, "export", a.model, "--output", f"{folder}/export"], check=True, stdout=subprocess.DEVNULL
        )
        models = [(sys.executable, a.model), (sys.executable, f"{folder}/export/1")]
        for _ in range(a.rounds):
            start = time.perf_counter()
            subprocess.run([*command, "predict", a.model, a.text], check=True, stdout=subprocess.DEVNULL)
            found["bert-tf predict MODEL text"].append([0, time.perf_counter() - start, 0])
            for way, (python, model) in zip(WAYS, [*models, (a.torch_python, a.model)]):
                if python:
                    found[way].append(seconds(python, way, model, a.text))
    print(f"{cpu()}\n\n| | opened | first answer after that | a later answer |\n|---|---|---|---|")
    for way, rounds in found.items():
        if rounds:
            opened, first, later = map(statistics.median, zip(*rounds))
            print(f"| {way} | {opened:.1f} | {first:.2f} | {later:.3f} |")


if __name__ == "__main__":
    main()
