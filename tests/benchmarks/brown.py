"""The Brown corpus as CoNLL files, as the README's and RESULTS' tagging numbers were measured with.

    python tests/benchmarks/brown.py FOLDER OUTPUT

FOLDER is the corpus as NLTK distributes it (ca01 ... cr09, word/tag). Documents are parted 400, 50, 50
at random; of them 2,000 sentences to train on, 1,000 to choose the epoch, 2,000 to test. The suffixes
for titles, headlines and citations (-tl, -hl, -nc) are cut off the tags. OUTPUT gets train.conll,
dev.conll, test.conll and labels.yaml, the list of tags for task.labels: the test set has some that the
training sentences lack.
"""

import argparse
import random
import re
from pathlib import Path


def sentences(file):
    for line in file.read_text(encoding="latin-1").splitlines():
        pairs = [token.rsplit("/", 1) for token in line.split()]
        if pairs:
            yield [(word, re.sub(r"(-(tl|hl|nc))+$", "", tag)) for word, tag in pairs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    documents = sorted(p for p in arguments.folder.iterdir() if re.fullmatch(r"c[a-r]\d\d", p.name))
    random.Random(0).shuffle(documents)
    arguments.output.mkdir(parents=True, exist_ok=True)
    tags = set()
    parts = {"train": (documents[:400], 2000), "dev": (documents[400:450], 1000), "test": (documents[450:], 2000)}
    for name, (chosen, count) in parts.items():
        found = [sentence for document in chosen for sentence in sentences(document)]
        random.Random(1).shuffle(found)
        found = found[:count]
        tags |= {tag for sentence in found for _, tag in sentence}
        text = "\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in sentence) for sentence in found)
        (arguments.output / f"{name}.conll").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {len(found):,} sentences, {sum(map(len, found)):,} words")
    quoted = ", ".join("'" + tag.replace("'", "''") + "'" for tag in sorted(tags))
    (arguments.output / "labels.yaml").write_text(f"[{quoted}]\n", encoding="utf-8")
    print(f"{len(tags)} tags")


if __name__ == "__main__":
    main()
