"""Every corruption in the list passes the public check, and one from outside of the library."""

import pytest
import tensorflow as tf

import tfrecords
from bert_tf.errors import ConfigError
from bert_tf.objectives import OBJECTIVES
from bert_tf.testing import check_corruption
from bert_tf.tokenizers import WordPieceTokenizer, train_words

WORDS = "a good bad film in paris anna paul met one .".split()
SETTINGS = {
    "masking": tfrecords.MaskingConfig(strategy="whole_word"),
    "replaced_tokens": tfrecords.MaskingConfig(),
    "permutation": tfrecords.PermutationConfig(permutation_size=8),
    "documents": tfrecords.DocumentsConfig(separate=True),
    "word_characters": tfrecords.WordsConfig(size=20),
    "denoising": tfrecords.DenoisingConfig(rate=0.3, mean_span=2.0),
}


@pytest.fixture(scope="module")
def tokenizer():
    sentinels = [f"<extra_id_{i}>" for i in range(6, -1, -1)]
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *sentinels])


def batch_of(tokenizer):
    texts = [" ".join((WORDS * 3)[i : i + 8 + i]) for i in range(8)]
    rows = tokenizer.pack(tokenizer.tokenize(texts), sequence_length=32)
    return dict(rows) | {"example_index": tf.range(8, dtype=tf.int64), "epoch": tf.zeros([8], tf.int64)}


@pytest.mark.parametrize("name", tfrecords.CORRUPTIONS)
def test_every_corruption(name, tokenizer):
    tokenizer = train_words([" ".join(WORDS)], 15) if name == "word_characters" else tokenizer
    corruption = tfrecords.CORRUPTIONS[name].corruption_class(tokenizer, SETTINGS[name])
    check_corruption(corruption, batch_of(tokenizer), draws=name not in ("documents", "word_characters"))


def test_objectives_name_corruptions_of_the_list():
    named = {objective.corruption for objective in OBJECTIVES.values()} - {None}
    assert named == set(tfrecords.CORRUPTIONS)


class Hidden(tfrecords.Corruption):
    """Hides one token of eight."""

    roles = ("mask",)

    def __call__(self, batch, seed):
        positions = tf.range(batch["token_ids"].shape[1])[None]
        bits = tfrecords.random_bits(self.keys(batch, seed), tfrecords.Stream.OUTSIDE, positions)
        hidden = batch["padding_mask"] & (bits < 1 << 29)
        return batch | {"token_ids": tf.where(hidden, self.tokenizer.mask_id, batch["token_ids"])}

    def explain(self, batch, features, seed):
        for hidden in (features["token_ids"] == self.tokenizer.mask_id).numpy():
            yield tfrecords.RowExplanation(f"{hidden.sum()} tokens are hidden")


class Forgetful(Hidden):
    """Draws by the row of the batch."""

    def keys(self, batch, seed):
        rows = tf.range(tf.shape(batch["token_ids"])[0], dtype=tf.int64)
        return super().keys(batch | {"example_index": rows}, seed)


def test_a_corruption_from_outside(tokenizer):
    batch = batch_of(tokenizer)
    with pytest.raises(AssertionError, match="is not registered"):
        check_corruption(Hidden(tokenizer, None), batch)
    tfrecords.register_corruption("hidden", Hidden), tfrecords.register_corruption("forgetful", Forgetful)
    try:
        check_corruption(Hidden(tokenizer, None), batch)
        with pytest.raises(AssertionError):
            check_corruption(Forgetful(tokenizer, None), batch)
        with pytest.raises(ConfigError, match="another corruption of the name 'hidden'"):
            tfrecords.register_corruption("hidden", Forgetful)
    finally:
        tfrecords.CORRUPTIONS.remove("hidden"), tfrecords.CORRUPTIONS.remove("forgetful")
