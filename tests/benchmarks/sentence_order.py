"""Pairs of segments that follow each other in a text, half of them swapped, as tables to fine-tune any model on.

    python tests/benchmarks/sentence_order.py train.jsonl held_out.jsonl --output order
    bert-tf finetune --init-from MINILM --train order/train.tsv --dev order/held_out.tsv --output run \
        --set task.kind=classification --set task.sequence_length=80 --set optimizer.learning_rate=5e-5 \
        --set train.epochs=2 --set train.precision=auto

Can the order of two segments be told from this text? What a model that knows the language learns of it says more about the
text than one that begins with random weights (docs/results/plateau.md). A segment is whole sentences, of at least --words
words together.
"""

import argparse
import json
import random
import re
from pathlib import Path


def segments(text, words):
    """Runs of whole sentences, those of one or two words left out: list of text."""
    found, segment = [], []
    for sentence in re.split(r"(?<=[.!?])\s+", text.replace("\t", " ")):
        if len(sentence.split()) > 2:
            segment += sentence.split()
        if len(segment) >= words:
            found.append(" ".join(segment))
            segment = []
    return found + ([" ".join(segment)] if segment else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="+", help="JSON lines with a text each")
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)
    for path in a.texts:
        rows = []
        for line in path.read_text(encoding="utf-8").splitlines():
            parts = segments(json.loads(line)["text"], a.words)
            for first, second in zip(parts[::2], parts[1::2]):
                ordered = chance.random() < 0.5
                rows.append((first, second, "ordered") if ordered else (second, first, "swapped"))
        chance.shuffle(rows)
        lines = map("\t".join, [("sentence1", "sentence2", "label"), *rows])
        (a.output / f"{path.stem}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
