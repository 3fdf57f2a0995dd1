"""Pairs of segments that follow each other in a text, half of them swapped, as a table to fine-tune any model on.

    python tests/benchmarks/sentence_order.py train.jsonl train.tsv
    python tests/benchmarks/sentence_order.py held_out.jsonl dev.tsv
    bert-tf finetune --init-from MINILM --train train.tsv --dev dev.tsv --output order --set task.kind=classification \
        --set task.sequence_length=80 --set optimizer.learning_rate=5e-5 --set train.epochs=2

Can the order of two segments be told from this text? What a model that knows the language learns of it says more about the
text than one that begins with random weights (RESULTS.md, "The plateau"). A segment is whole sentences, of at least --words
words together.
"""

import argparse
import json
import random
import re
from pathlib import Path


def segments(text, words):
    """Runs of whole sentences: list of text."""
    found, segment = [], []
    for sentence in re.split(r"(?<=[.!?])\s+", " ".join(text.split())):
        segment += sentence.split()
        if len(segment) >= words:
            found.append(" ".join(segment))
            segment = []
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="JSON lines with a text each")
    parser.add_argument("table", type=Path)
    parser.add_argument("--words", type=int, default=20)
    a = parser.parse_args()
    chance, rows = random.Random(0), []
    for line in a.texts.read_text(encoding="utf-8").splitlines():
        parts = segments(json.loads(line)["text"], a.words)
        for first, second in zip(parts[::2], parts[1::2]):
            swapped = chance.random() < 0.5
            rows.append((second, first, "swapped") if swapped else (first, second, "ordered"))
    a.table.write_text("\n".join(map("\t".join, [("sentence1", "sentence2", "label"), *rows])) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
