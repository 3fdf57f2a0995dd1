"""What the tests of this room share: a vocabulary, texts, and a tiny encoder."""

import functools

import tensorflow as tf

from bert_tf.models import BertConfig, BertEncoder

LENGTH = 24
LABELS = ("negative", "neutral", "größer")
TAGS = ("O", "B-LOC", "I-LOC", "V", "N")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,!?'-", *"abcdefghijklmnopqrstuvwxyz"]
VOCABULARY += [f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY += "the cat sat on mat paris is in france un ##able small ##er 漢 字 cafe".split()
TEXTS = (
    "The cat sat on the mat.",
    "",
    "Paris is unable; [MASK] is [MASK] in France!",
    "naïve Café 漢字, smaller 🙂 [SEP] cat",
    "the cat sat on the mat, " * 30,
)


@functools.cache
def load(path):
    """The SavedModel of a path; loaded once, which takes seconds."""
    return tf.saved_model.load(str(path))


def bert(pooler=True, dtype=None):
    config = BertConfig(
        vocabulary_size=len(VOCABULARY) + 3,  # rounded up, as for tensor cores
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        intermediate_size=32,
        max_positions=32,
        initializer_range=0.3,  # answers that differ between texts
    )
    return BertEncoder(config, pooler=pooler, dtype=dtype)
