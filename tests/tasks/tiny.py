"""A tokenizer and an encoder small enough to be trained in a test."""

import keras

from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.tokenizers import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "good fine bad awful the film was a plot actor in london paris anna bert met john ##son ##s ##ville . , ' -".split()
)


def tokenizer():
    return WordPieceTokenizer(SPECIAL + WORDS)


def encoder(layers=1, hidden=32, dropout=0.0, seed=0, **kwargs):
    keras.utils.set_random_seed(seed)
    config = BertConfig(
        vocabulary_size=len(SPECIAL + WORDS),
        hidden_size=hidden,
        num_layers=layers,
        num_heads=2,
        intermediate_size=2 * hidden,
        max_positions=64,
        dropout=dropout,
        attention_dropout=dropout,
        # Wider than the published 0.02: a model this small learns nothing at first from it.
        initializer_range=0.2,
    )
    return BertEncoder(config, **kwargs)
