"""A tokenizer and an encoder small enough to be trained in a test."""

import keras
import numpy as np

from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "good fine bad awful the film was a plot actor in london paris anna bert met john ##son ##s ##ville . , ' -".split()
)


def tokenizer():
    return WordPieceTokenizer(SPECIAL + WORDS)


def token_inputs(ids):
    """The inputs of a model of rows without padding."""
    ids = np.asarray(ids, "int32")
    return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones(ids.shape, bool)}


def encoder(layers=1, hidden=32, dropout=0.0, seed=0, **kwargs):
    keras.utils.set_random_seed(seed)
    # An initializer_range wider than the published 0.02: a model this small learns nothing at first from it.
    rates = {"dropout": dropout, "attention_dropout": dropout, "initializer_range": 0.2}
    sizes = {"num_layers": layers, "num_heads": 2, "intermediate_size": 2 * hidden, "max_positions": 64}
    return BertEncoder(BertConfig(len(SPECIAL + WORDS), hidden, **sizes, **rates), **kwargs)


def learned(data, task=None, **settings):
    """(The task, or that of the settings, when it has learned from labelled data; their examples)."""
    task = task or build_task(settings, tokenizer())
    examples = task.read(data)
    return task.learn(examples), examples
