"""Gaps filled by a T5, against a plain call of the model."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.models import T5, T5Config
from bert_tf.probing import Cloze, GapScorer, cloze_question
from bert_tf.tokenizers import WordPieceTokenizer

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the un ##believ ##able film is good bad <extra_id_0> <extra_id_1>".split()
SIZES = {"num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 32}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(4)
    model = T5(T5Config(len(TOKENS), 16, **SIZES))
    for variable in model.weights:
        variable.assign(variable + 0.3 * np.random.default_rng(1).normal(size=variable.shape))
    return model


def test_the_target_is_the_filling_between_two_sentinels(model):
    scorer = GapScorer(model, WordPieceTokenizer(TOKENS))
    texts = ["the unbelievable film", "is good"]
    (long, filling), (short, word) = scorer.span_scores(texts, [(4, 16), (3, 7)])
    source, target = [2, 5, 13, 9, 3], [13, 6, 7, 8, 14]
    features = {"token_ids": np.array([source]), "decoder_token_ids": np.array([[0, *target[:-1]]])}
    features["padding_mask"] = np.ones((1, len(source)), bool)
    logits = np.asarray(model.output_logits(model(features)["sequence_output"])[0], np.float64)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = [log_p[i, token] for i, token in enumerate(target)]
    assert long == pytest.approx(sum(expected[1:]), abs=1e-4)
    np.testing.assert_allclose(filling.log_p, expected[1:-1], atol=1e-5)
    assert filling.ids.tolist() == [6, 7, 8] and filling.starts.tolist() == [4, 6, 12]
    assert filling.ranks.tolist() == [int((logits[i] > logits[i, target[i]]).sum()) for i in (1, 2, 3)]
    assert word.ids.tolist() == [11] and short < 0
    (fill,) = scorer.fill_scores(texts[:1], [(4, 16)])
    assert fill == pytest.approx(np.exp(expected[1:-1]).mean(), rel=1e-4)


def test_cloze_questions(model):
    scorer = GapScorer(model, WordPieceTokenizer(TOKENS))
    question = cloze_question("films", "the film is ___", ("good",), ("good", "bad", "unbelievable"))
    found = Cloze().run(scorer, [question])
    values = [scorer.span_scores([text], [span])[0][0] for text, span in zip(question.texts, question.spans)]
    assert found["films"]["right"] == (values[0] > max(values[1:])) and found.facts["ranked"] == {"films": 1}
    with pytest.raises(ConfigError, match="no probability of a whole text"):
        scorer.score(["the film"])
    with pytest.raises(ConfigError, match="has no sentinels"):
        GapScorer(model, WordPieceTokenizer(TOKENS[:-1]))
