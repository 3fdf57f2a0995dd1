"""The list of tokenizer kinds: what it says is true, it needs no TensorFlow, and others can add to it."""

import dataclasses
import json
import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import KINDS, Tokenizer, TokenizerKind, VocabularyTrainer, load_tokenizer
from bert_tf.tokenizers.kinds import trainers
from bert_tf.tokenizers.ops.strings import string_table


class WordTokenizer(Tokenizer):
    """Every word of a text is a token, or unknown."""

    kind = "words"

    def __init__(self, vocabulary):
        super().__init__(vocabulary, {"pad": "<pad>", "unk": "<unk>"}, layout="none")
        with tf.init_scope():
            self._table = string_table(self._ids, self.unk_id)
        self._encoder_resources = (self._table,)
        self.settings = {"type": self.kind}

    def _encode(self, text, with_offsets):
        words, starts, ends = tf_text.WhitespaceTokenizer().tokenize_with_offsets(text)
        ids, splits = self._table.lookup(words.values), tf.cast(words.row_splits, tf.int32)
        return ids, splits, tf.cast(starts.values, tf.int32), tf.cast(ends.values, tf.int32)

    def _spell(self, token, first, last):
        return (token if first else f" {token}").encode()

    def save(self, folder):
        folder.mkdir(parents=True)
        (folder / "words.json").write_text(json.dumps(self.vocabulary))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "WordTokenizer"}')


def load_words(path):
    return WordTokenizer(json.loads((path / "words.json").read_text()))


def train_words(texts, vocabulary_size, lower=True):
    words = sorted({word.lower() if lower else word for text in texts for word in text.split()})
    return WordTokenizer(["<pad>", "<unk>", *words][:vocabulary_size])


TRAINER = VocabularyTrainer("words", "an example", train_words, cased={"lower": False})
WORDS = TokenizerKind("words", load_words, files=(("words.json",),), classes=("WordTokenizer",), trainers=(TRAINER,))


def test_a_kind_from_outside(tmp_path):
    KINDS.register(WORDS)
    tokenizer = trainers()["words"].train(["the Senate of the people"], 10, cased=True)
    assert tokenizer.vocabulary == ["<pad>", "<unk>", "Senate", "of", "people", "the"]
    assert tokenizer.encode("the unknown Senate <pad>") == [5, 1, 2, 0]
    tokenizer.save(tmp_path / "named")
    assert load_tokenizer(tmp_path / "named").fingerprint == tokenizer.fingerprint
    (tmp_path / "named" / "tokenizer_config.json").unlink()
    loaded = load_tokenizer(tmp_path / "named")
    assert isinstance(loaded, WordTokenizer) and loaded.decode([5, 2]) == "the Senate"
    with pytest.raises(ConfigError, match="no such setting"):
        load_tokenizer(tmp_path / "named", lowercase=True)
    with pytest.raises(ConfigError, match="there is another tokenizer kind of the name 'bpe'"):
        KINDS.register(dataclasses.replace(WORDS, name="bpe"))
    KINDS.remove("words")


def test_the_order_of_the_trainers():
    names = (
        "wordpiece words unigram unigram_xlnet unigram_t5 byte_level_bpe byte_level_bpe_gpt2 bpe byte byte_extra_ids"
    )
    assert list(trainers())[:11] == [*names.split(), "characters"]


def test_it_is_read_without_tensorflow():
    program = "import sys, bert_tf.cli.vocab; assert not {'tensorflow', 'keras', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
