"""A tokenizer and an encoder that are built in a moment, for examples and tests."""

import keras

from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.tokenizers import WordPieceTokenizer


def small_tokenizer(text):
    """A `WordPieceTokenizer` that knows the words of `text` and some punctuation.

    Example:
        from bert_tf.testing import small_tokenizer

        small_tokenizer("a good film").encode("a good film")
    """
    words = dict.fromkeys([*text.lower().split(), *".,!?'"])
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])


def small_encoder(tokenizer, **settings):
    """A BERT encoder with one layer of 16, 64 positions and no dropout; always with the same random weights.

    Args:
        tokenizer: its vocabulary size is taken.
        settings: of `BertConfig`, or `pooler`.

    Example:
        from bert_tf.testing import small_encoder, small_tokenizer

        encoder = small_encoder(small_tokenizer("a good film"), num_layers=2)
        encoder({"token_ids": [[5, 6, 7]]})["sequence_output"].shape  # [1, 3, 16]
    """
    keras.utils.set_random_seed(0)
    pooler = settings.pop("pooler", True)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 64}
    # The published initializer_range of 0.02 makes answers of so small a model differ by little more than rounding.
    defaults = sizes | {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}
    return BertEncoder(BertConfig(tokenizer.vocabulary_size, **(defaults | settings)), pooler=pooler)
