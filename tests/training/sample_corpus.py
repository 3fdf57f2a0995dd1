"""A few of the sample's addresses as a corpus, and a vocabulary of them."""

import json
from pathlib import Path

from bert_tf import samples
from bert_tf.tokenizers import train_wordpiece


def addresses(count, characters):
    """The first characters of the first addresses."""
    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    return [json.loads(line)["text"][:characters] for line in sample.read_text(encoding="utf-8").splitlines()[:count]]


def write_corpus(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def vocabulary_of(texts, size=300):
    return train_wordpiece(texts, size, lowercase=True)
