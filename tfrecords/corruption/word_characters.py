"""Rows of word ids as rows of words' characters; nothing is drawn."""

import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import CharacterTokenizer
from tfrecords.corruption.corruption import Corruption, RowExplanation
from tfrecords.corruption.word_characters_config import WordsConfig  # noqa: F401


class WordCharacters(Corruption):
    """Batch to features of a bidirectional LM: shards hold the ids of words, models read their characters.

    The characters of every word of the vocabulary are in a table. So shards are as small as others, and words that the
    vocabulary lacks are [UNK] in pretraining; a pretrained model reads the characters of any word.

    Args:
        tokenizer: of the shards, whose tokens are whole words: a `WordPieceTokenizer` of `train_words`.
        config: a `WordsConfig`.

    Call arguments:
        batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`.
        seed: not used.

    Returns:
        The batch with
            token_ids: int32 [B, S, max_characters], see `CharacterTokenizer`.
            word_ids: int32 [B, S], the ids of the shards.

    Raises:
        ConfigError: the vocabulary has more words than `config.size`.

    Example:
        corrupt = WordCharacters(train_words(["the law of the people"], 8), WordsConfig(size=8))
        batch = {"token_ids": tf.constant([[5, 6]]), "padding_mask": tf.ones((1, 2), bool)}
        corrupt(batch, seed=0)["token_ids"].shape  # [1, 2, 50]
    """

    def __init__(self, tokenizer, config):
        super().__init__(tokenizer, config)
        if config.size is not None and tokenizer.vocabulary_size > config.size:
            raise ConfigError(
                f"objective.words.size={config.size}, but the tokenizer of the shards has {tokenizer.vocabulary_size} words; "
                f"set objective.words.size={tokenizer.vocabulary_size}"
            )
        characters = CharacterTokenizer(config.max_characters)
        with tf.init_scope():
            rows = characters.tokenize(tokenizer.vocabulary)
            # A token of white space alone would be no word, and one that holds it several.
            words = rows.to_tensor(shape=[None, 1, config.max_characters])[:, 0]
            roles = [name for name in ("cls_id", "sep_id", "pad_id") if getattr(tokenizer, name) is not None]
            special = tf.gather(characters.special_words, [getattr(characters, name) for name in roles])
            places = [[getattr(tokenizer, name)] for name in roles]
            self.table = tf.tensor_scatter_nd_update(words, places, special).numpy()

    def __call__(self, batch, seed):
        words = batch["token_ids"]
        return batch | {"token_ids": tf.gather(tf.constant(self.table), words), "word_ids": words}

    def explain(self, batch, features, seed):
        """Yields a `RowExplanation` for each row."""
        for mask in batch["padding_mask"].numpy():
            yield RowExplanation(
                f"{2 * (mask.sum() - 1)} words: each from the words before it, and from those after it"
            )
