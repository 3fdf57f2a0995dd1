"""The sequence autoencoder and the bidirectional LM, against their definitions; and from text to a pretrained ELMo."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from opened import encoder_and_tokenizer

from bert_tf import config
from bert_tf.errors import ConfigError
from bert_tf.models import BertConfig, BertEncoder, Elmo, ElmoConfig, LstmLM, LstmLMConfig
from bert_tf.objectives import BidirectionalLM, SequenceAutoencoder
from bert_tf.objectives.bidirectional_lm import reading_characters
from bert_tf.objectives.settings import BidirectionalLMConfig
from bert_tf.tokenizers import CharacterTokenizer, train_words
from bert_tf.training.pretraining import PretrainConfig, pretrain
from tfrecords import ShardsConfig, WordCharacters, WordsConfig, write_shards

ELMO = {"hidden_size": 12, "num_layers": 1, "units": 10, "character_size": 4}
ELMO |= {"filters": ((1, 6), (3, 6)), "dropout": 0.0}


def losses_of(logits, labels):
    logits = np.asarray(logits, "float64")
    return np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.array(labels)[:, None], -1)[:, 0]


def test_a_text_is_read_and_written_again():
    keras.utils.set_random_seed(0)
    backbone = LstmLM(LstmLMConfig(20, hidden_size=6, embedding_size=4, embedding_dropout=0.0), dtype="float32")
    model = SequenceAutoencoder(backbone)
    row, texts = [5, 6, 7, 8, 9, 0], [1, 1, 1, 2, 2, 0]
    features = {"token_ids": np.array([row], "int32"), "sequence_ids": np.array([texts], "int32"),
                "padding_mask": np.array([texts]) > 0}  # fmt: skip
    expected = 0
    for text in ([5, 6, 7], [8, 9]):
        logits = backbone.output_logits(backbone({"token_ids": np.array([text + text])})["sequence_output"])[0]
        expected += losses_of(logits[len(text) - 1 : -1], text).sum()
    losses, _metrics = model.loss_sums(features, training=False)
    assert float(losses["sequence_autoencoder"]) == pytest.approx(expected, rel=1e-5)
    assert float(model.loss_weights(features)["sequence_autoencoder"]) == 5


def test_both_directions_predict_their_next_word():
    keras.utils.set_random_seed(0)
    tokenizer = train_words(["the law of the people"], 9)
    model = BidirectionalLM(Elmo(ElmoConfig(**ELMO), dtype="float32"), WordsConfig(size=10))
    words, mask = np.array([[5, 6, 7, 5], [8, 7, 0, 0]], "int32"), np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    given = {"token_ids": tf.constant(words), "padding_mask": tf.constant(mask)}
    features = WordCharacters(tokenizer, WordsConfig(size=10))(given, seed=0)
    characters = CharacterTokenizer()
    np.testing.assert_array_equal(features["token_ids"][0], characters.encode("the law of the"))
    assert not np.any(features["token_ids"][1, 2:])
    logits = model(features)
    losses, _metrics = model.loss_sums(features, training=False)
    ways, rows = [logits[f"{way}_lm_logits"] for way in ("forward", "backward")], ((0, 4), (1, 2))
    forward = sum(losses_of(ways[0][r, : n - 1], words[r, 1:n]).sum() for r, n in rows)
    backward = sum(losses_of(ways[1][r, 1:n], words[r, : n - 1]).sum() for r, n in rows)
    assert float(losses["forward_lm"]) == pytest.approx(forward, rel=1e-5)
    assert float(losses["backward_lm"]) == pytest.approx(backward, rel=1e-5)
    assert [float(x) for x in model.loss_weights(features).values()] == [4, 4]
    assert model.loss_coefficients == {"forward_lm": 0.5, "backward_lm": 0.5}

    # What a word is does not change how it is predicted: neither direction sees its own target.
    ids = features["token_ids"]
    changed = model(features | {"token_ids": tf.tensor_scatter_nd_update(ids, [[0, 2]], ids[1, :1])})
    np.testing.assert_allclose(changed["forward_lm_logits"][0, :2], logits["forward_lm_logits"][0, :2], atol=1e-6)
    np.testing.assert_allclose(changed["backward_lm_logits"][0, 3], logits["backward_lm_logits"][0, 3], atol=1e-6)
    assert np.abs(changed["forward_lm_logits"][0, 2] - logits["forward_lm_logits"][0, 2]).max() > 1e-4


def test_models_and_vocabularies_that_do_not_fit():
    bert = BertEncoder(BertConfig(20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=8))
    with pytest.raises(ConfigError, match="a half for each direction"):
        BidirectionalLM(bert, WordsConfig(size=10))
    with pytest.raises(ConfigError, match="set objective.words.size=9"):
        WordCharacters(train_words(["the law of the people"], 9), WordsConfig(size=8))


def test_words_are_sorted_by_frequency():
    tokenizer = train_words(["The law of the people, by the people."], 10)
    assert tokenizer.vocabulary[5:] == ["the", "people", ",", ".", "by"]
    assert tokenizer.encode("the law") == [5, tokenizer.unk_id]
    with pytest.raises(ConfigError, match="special tokens"):
        train_words(["the law"], 5)


@pytest.mark.parametrize("lowercase", [True, False])
def test_characters_are_read_as_the_words_of_the_shards(lowercase):
    text = "The Café ÉCOLE."
    words = train_words([text], 20, lowercase=lowercase)
    characters = reading_characters(words, BidirectionalLMConfig(words=WordsConfig(size=20)))
    assert characters.decode(characters.encode(text)).split() == [words.vocabulary[i] for i in words.encode(text)]


def test_elmo_is_pretrained_from_text(tmp_path):
    text = "the law of the people . a good film by anna . "
    (tmp_path / "corpus.txt").write_text("\n\n".join([text * 4] * 8))
    tokenizer = train_words([text], 40)
    shards = ShardsConfig(sequence_length=12, format="token_blocks")
    write_shards(tmp_path / "corpus.txt", tmp_path / "shards", tokenizer, shards, workers=1)
    run, metrics = pretrain(config.build(PretrainConfig, {
        "model": {"family": "elmo"} | ELMO, "data": {"shards": str(tmp_path / "shards")},
        "objective": {"name": "bidirectional_lm", "sampled_softmax": 8, "words": {"size": tokenizer.vocabulary_size}},
        "optimizer": {"name": "adagrad", "learning_rate": 0.5},
        "train": {"steps": 40, "batch_size": 8, "log_every": 10, "strategy": "one"},
    }), tmp_path / "run")  # fmt: skip
    first = run.metrics()[0]
    assert metrics["loss"] < first["loss"]
    encoder, characters = encoder_and_tokenizer(run.path)
    assert isinstance(characters, CharacterTokenizer) and encoder.config.vocabulary_size == 262
    # The words of the shards have no capitals and accents: neither has what the pretrained model reads.
    assert characters.decode(characters.encode("A Café.")) == "a cafe ."
    batch = characters.pack(characters.tokenize(["A new word"]), sequence_length=8)
    outputs = encoder({name: batch[name] for name in ("token_ids", "padding_mask")})
    assert np.isfinite(outputs["sequence_output"]).all()
