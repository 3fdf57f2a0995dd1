"""The texts of some tasks as a corpus, one sentence a line and twenty a document: `--corpus` of distillation.py.

    python tests/benchmarks/task_texts.py --glue GLUE --reviews REVIEWS > tasks.txt

Of rte and stsb the training and the test file, of mrpc and the reviews the training file.
"""

import argparse
import csv
from pathlib import Path

GLUE = {
    "rte/train.tsv": ("sentence1", "sentence2"),
    "rte/test.tsv": ("sentence1", "sentence2"),
    "stsb/train.tsv": ("sentence1", "sentence2"),
    "stsb/test.tsv": ("sentence1", "sentence2"),
    "mrpc/train.tsv": ("#1 String", "#2 String"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glue", type=Path, required=True, help="folder with rte/, stsb/ and mrpc/")
    parser.add_argument("--reviews", type=Path, required=True, help="folder with train.tsv")
    a = parser.parse_args()
    texts = []
    for name, columns in GLUE.items():
        with (a.glue / name).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            texts += [row[column] for row in rows for column in columns if row[column]]
    reviews = (a.reviews / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts += [line.split("\t")[0] for line in reviews]
    for start in range(0, len(texts), 20):
        print("\n".join(texts[start : start + 20]) + "\n")


if __name__ == "__main__":
    main()
