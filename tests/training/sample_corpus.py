"""A few of the sample's addresses as a corpus, a vocabulary and shards of them, and an objective to train on these."""

import json
from pathlib import Path

from bert_tf import samples
from bert_tf.tokenizers import train_wordpiece
from tfrecords import ShardsConfig, write_shards

#: ELECTRA's objective with a generator of half the size.
DETECTION = {"name": "replaced_token_detection", "generator_size": 0.5}
DETECTION |= {"masking": {"mask_token_rate": 0.85, "random_token_rate": 0.0}}


def addresses(count, characters):
    """The first characters of the first addresses."""
    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    return [json.loads(line)["text"][:characters] for line in sample.read_text(encoding="utf-8").splitlines()[:count]]


def write_corpus(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def vocabulary_of(texts, size=300):
    return train_wordpiece(texts, size, lowercase=True)


def write_sample(folder, count=3, characters=8000, vocabulary=300, shards=None, **packing):
    """Writes addresses and their shards in rows of 32 tokens into a folder, "shards" if no names are given with settings.

    Returns:
        The tokenizer.
    """
    texts = addresses(count, characters)
    corpus, tokenizer = write_corpus(folder / "corpus.jsonl", texts), vocabulary_of(texts, vocabulary)
    for name, settings in (shards or {"shards": packing}).items():
        config = ShardsConfig(**{"sequence_length": 32} | settings)
        write_shards([corpus], folder / name, tokenizer, config, progress=False)
    return tokenizer
