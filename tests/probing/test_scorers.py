"""Pseudo-log-likelihood and log-likelihood, token by token against plain calls of the model."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder, GPT2Config, GPT2Decoder, XLNetConfig, XLNetEncoder
from bert_tf.models.electra.config import ElectraConfig
from bert_tf.models.electra.model import ElectraEncoder
from bert_tf.objectives import CausalLM, MaskedLM, PermutationLM, ReplacedTokenDetection
from bert_tf.objectives.replaced_token_detection import make_generator
from bert_tf.probing import HiddenTokenScorer, text_scorer
from bert_tf.tokenizers import WordPieceTokenizer

PIECES = "the un ##believ ##able film is good .".split()
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES])
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.4}
TEXTS = ["the unbelievable film", "is good ."]
#: The pieces of TEXTS, and for each the first piece of its word.
IDS = [[5, 6, 7, 8, 9], [10, 11, 12]]
WORDS = [[0, 1, 1, 1, 4], [0, 1, 2]]


@pytest.fixture(scope="module", autouse=True)
def seed():
    keras.utils.set_random_seed(3)


@pytest.fixture(scope="module")
def bert():
    return MaskedLM(BertEncoder(BertConfig(TOKENIZER.vocabulary_size, max_positions=12, **SIZES), pooler=False))


def log_softmax(x):
    x = np.asarray(x, np.float64)
    return x - np.log(np.sum(np.exp(x)))


def one_by_one(predict, hide):
    """float64 [T] of each text: `predict(row, position)` gives the logits for each token."""
    results = []
    for ids, words in zip(IDS, WORDS):
        found = []
        for i, token in enumerate(ids):
            row = [2, *ids, 3]
            for j in range(i, len(ids)):
                if j == i or (hide == "word" and words[j] == words[i]):
                    row[j + 1] = 4
            found.append(log_softmax(predict(np.array([row]), np.array([[i + 1]]))[0, 0])[token])
        results.append(found)
    return results


@pytest.mark.parametrize("hide", ["token", "word"])
def test_masked_lm(bert, hide):
    scored = HiddenTokenScorer(bert, TOKENIZER, batch_size=3, hide=hide).score(TEXTS)
    predicted = one_by_one(lambda row, at: bert({"token_ids": row, "mask_positions": at})["masked_lm_logits"], hide)
    for text, ids, expected in zip(scored, IDS, predicted):
        assert text.ids.tolist() == ids
        np.testing.assert_allclose(text.log_p, expected, atol=1e-5)
        assert text.log_likelihood == pytest.approx(sum(expected), abs=1e-4)
    assert scored[0].starts.tolist() == [0, 4, 6, 12, 17] and scored[0].ends.tolist() == [3, 6, 12, 16, 21]


def test_ranks_and_spans(bert):
    scorer = HiddenTokenScorer(bert, TOKENIZER, hide="token")
    (text,) = scorer.score(TEXTS[:1])
    features = {"token_ids": np.array([[2, 4, *IDS[0][1:], 3]]), "mask_positions": np.array([[1]])}
    logits = np.asarray(bert(features)["masked_lm_logits"][0, 0])
    assert text.ranks[0] == np.sum(logits > logits[5])
    (value, span), (_other, alone) = scorer.span_scores(TEXTS, [(4, 16), (3, 7)])
    by_word = HiddenTokenScorer(bert, TOKENIZER, hide="word").score(TEXTS[:1])[0].log_p[1:4]
    np.testing.assert_allclose(span.log_p, by_word, atol=1e-6)  # what fills a blank is hidden as a whole
    assert value == pytest.approx(np.mean(by_word), abs=1e-6) and alone.ids.tolist() == [11]


def test_electra_by_its_generator():
    sizes = SIZES | {"vocabulary_size": TOKENIZER.vocabulary_size, "embedding_size": 8, "max_positions": 12}
    encoder = ElectraEncoder(ElectraConfig(**sizes))
    objective = ReplacedTokenDetection(encoder, make_generator(encoder, ElectraConfig(**sizes | {"hidden_size": 8})))
    scored = text_scorer(objective, TOKENIZER, hide="token").score(TEXTS)
    generator = objective.generator

    def predict(row, at):
        x = generator.outputs_at({"token_ids": row}, at)["sequence_output"]
        return objective.masked_lm_head(x, generator.embedding_table)

    for text, expected in zip(scored, one_by_one(predict, "token")):
        np.testing.assert_allclose(text.log_p, expected, atol=1e-5)
    with pytest.raises(ConfigError, match="has no generator"):
        text_scorer(ReplacedTokenDetection(encoder), TOKENIZER).score(TEXTS)


def test_xlnet_by_its_query_stream():
    sizes = SIZES | {"vocabulary_size": TOKENIZER.vocabulary_size}
    scorer = text_scorer(PermutationLM(XLNetEncoder(XLNetConfig(**sizes), pooler=False)), TOKENIZER, hide="word")
    texts = ["the unbelievable film", "is unbelievable film", "the unablebeliev film"]
    same, first, inside = scorer.score(texts)
    assert abs(first.log_p[0] - same.log_p[0]) > 1e-4 and abs(first.log_p[4] - same.log_p[4]) > 1e-4
    # The first piece is predicted without the later ones of its word, and the last one with those before it.
    assert inside.log_p[1] == pytest.approx(same.log_p[1], abs=1e-5)
    assert abs(inside.log_p[3] - same.log_p[3]) > 1e-4 and inside.ids[3] == same.ids[2]


def test_a_decoder_sees_what_is_before():
    sizes = SIZES | {"vocabulary_size": TOKENIZER.vocabulary_size, "max_positions": 12}
    decoder = GPT2Decoder(GPT2Config(**sizes))
    scorer = text_scorer(CausalLM(decoder), TOKENIZER)
    assert scorer.measure == "log-likelihood"
    for text, ids in zip(scorer.score(TEXTS), IDS):
        row = [2, *ids]
        logits = decoder.output_logits(decoder({"token_ids": np.array([row])})["sequence_output"])[0]
        expected = [log_softmax(logits[i])[token] for i, token in enumerate(ids)]
        np.testing.assert_allclose(text.log_p, expected, atol=1e-5)
        assert text.ids.tolist() == ids
        best = np.argsort(-np.asarray(logits), axis=-1)
        assert text.ranks.tolist() == [best[i].tolist().index(token) for i, token in enumerate(ids)]
    value, span = scorer.span_scores(TEXTS[:1], [(17, 21)])[0]
    assert span.ids.tolist() == [9] and value == pytest.approx(scorer.score(TEXTS[:1])[0].log_likelihood)


def test_errors(bert):
    with pytest.raises(DataError, match="has 12 tokens, the model room for 10"):
        text_scorer(bert, TOKENIZER).score(["good " * 12])
    with pytest.raises(DataError, match="'  ' has no token"):
        text_scorer(bert, TOKENIZER).score(["  "])
    for scores in (text_scorer(bert, TOKENIZER).span_scores, text_scorer(bert, TOKENIZER).fill_scores):
        with pytest.raises(DataError, match="the tokenizer drops ' ' in 'good film'"):
            scores(["good film"], [(4, 5)])
    with pytest.raises(ConfigError, match="hide='words'"):
        HiddenTokenScorer(bert, TOKENIZER, hide="words")
