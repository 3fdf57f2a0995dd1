"""Small real data that come with the library; their licences are in NOTICE.md."""

from pathlib import Path

from bert_tf.files import atomic_write

_FOLDER = Path(__file__).parent

#: 33 addresses of presidents of the United States, one JSON object a line.
STATE_OF_THE_UNION = _FOLDER / "state_of_the_union.jsonl"
#: Sentences of movie reviews with their sentiment, 1 or 0: TSV with columns `text` and `label`.
REVIEWS = {split: _FOLDER / f"reviews_{split}.tsv" for split in ("train", "dev", "test")}
#: Sentences of web texts, a word with its part of speech a line: CoNLL.
TAGS = {split: _FOLDER / f"tags_{split}.conll" for split in ("train", "dev", "test")}


def write_review_text(path):
    """Writes the training reviews without their labels, one a line: text to pretrain on.

    A model that has read the text of its task does better at it (Gururangan et al. 2020, section 4).
    """
    rows = REVIEWS["train"].read_text(encoding="utf-8").splitlines()[1:]
    with atomic_write(path) as file:
        file.writelines(row.rsplit("\t", 1)[0] + "\n" for row in rows)
