import numpy as np
import pytest
from keras import ops
from markov import MarkovSteps
from numeric import log_softmax

from bert_tf.errors import ConfigError
from bert_tf.generation import GenerationConfig, generate_tokens
from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.sampling import sample

STOP = 0
LOGITS = np.random.default_rng(5).normal(0, 2, (9, 9, 9))


def greedily(prompt, limit, log_p, restrict, stop=STOP):
    """The greedy text, in NumPy."""
    tokens = list(prompt)
    for index in range(limit):
        tokens.append(int(np.argmax(restrict(log_p[tokens[-2], tokens[-1]].copy(), tokens, index))))
        if tokens[-1] == stop:
            break
    return tokens[len(prompt) :]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_comes_twice(n):
    def restrict(scores, tokens, index):
        if index < 4:
            scores[STOP] = -np.inf
        for start in range(len(tokens) - n + 1):
            if tokens[start : start + n - 1] == tokens[len(tokens) - n + 1 :]:
                scores[tokens[start + n - 1]] = -np.inf
        return scores

    prompts = [[1, 2, 1, 2], [5, 5, 5, 5], [3, 1, 4, 1]]
    restrictions = Restrictions(stop_ids=(STOP,), min_new_tokens=4, no_repeat_ngram=n)
    limit = 4 if n == 1 else 8
    result = generate_tokens(MarkovSteps(LOGITS, prompts, limit), GenerationConfig(max_new_tokens=limit), restrictions)
    for row, prompt in enumerate(prompts):
        text = greedily(prompt, limit, log_softmax(LOGITS), restrict)
        assert np.asarray(result["token_ids"][row])[: len(text)].tolist() == text


def test_padding_on_the_left_counts_for_no_ngram():
    texts, config = [], GenerationConfig(max_new_tokens=8)
    for prompt, mask in (([[4, 1]], None), ([[2, 3, 4, 1]], [[0, 0, 1, 1]])):
        steps = MarkovSteps(LOGITS, prompt, 8, padding_mask=mask)
        texts.append(generate_tokens(steps, config, Restrictions(no_repeat_ngram=1))["token_ids"])
    np.testing.assert_array_equal(*texts)


@pytest.mark.parametrize("penalty", [3.0, 0.5])
def test_repeated_tokens_are_penalized(penalty):
    """As `RepetitionPenaltyLogitsProcessor` of transformers: once a token, however often it is there."""

    def restrict(scores, tokens, index):
        for token in set(tokens):
            scores[token] = scores[token] * penalty if scores[token] < 0 else scores[token] / penalty
        return scores

    def texts(prompts, restrictions=Restrictions(repetition_penalty=penalty), **mask):
        steps = MarkovSteps(LOGITS, prompts, 8, **mask)
        return np.asarray(generate_tokens(steps, GenerationConfig(max_new_tokens=8), restrictions)["token_ids"])

    prompts = [[1, 2, 1, 2], [5, 5, 5, 5], [3, 1, 4, 1]]
    found = texts(prompts)
    assert (found != texts(prompts, Restrictions())).any()
    for row, prompt in enumerate(prompts):
        assert found[row].tolist() == greedily(prompt, 8, LOGITS, restrict, stop=None)
    np.testing.assert_array_equal(texts([[7, 8, 5, 5]], padding_mask=[[0, 0, 1, 1]]), texts([[5, 5]]))


def test_of_equal_logits_exactly_k_stay_and_the_token_that_crosses_p_stays():
    def drawn(p, **settings):
        logits = ops.convert_to_tensor(np.tile(np.log(p), (4000, 1)).astype("float32"))
        return set(np.asarray(sample(logits, GenerationConfig(method="sample", **settings), 0)).tolist())

    assert drawn([0.2, 0.2, 0.2, 0.4], top_k=3) == {3, 0, 1}
    assert drawn([0.5, 0.3, 0.2], top_p=0.4) == {0}
    assert drawn([0.5, 0.3, 0.2], top_p=0.6) == {0, 1}
    assert drawn([0.5, 0.25, 0.25], top_p=0.5) == {0}
    assert drawn([0.25, 0.25, 0.25, 0.25], top_p=0.3) == {0, 1}  # the smallest set
    assert drawn([0.25, 0.25, 0.25, 0.25], top_p=1e-50) == {0}


CASES = {
    "all": ({}, lambda p: p),
    "temperature": ({"temperature": 0.5}, lambda p: p**2),
    "top_k": ({"top_k": 3}, lambda p: np.where(p >= np.sort(p)[-3], p, 0)),
    "top_p": ({"top_p": 0.7}, lambda p: np.where(p >= crossing(p, 0.7), p, 0)),
    "top_p of several": ({"top_p": 0.94}, lambda p: np.where(p >= crossing(p, 0.94), p, 0)),
    "top_k and top_p": ({"top_k": 4, "top_p": 0.8}, lambda p: np.where(top(p, 4) >= crossing(top(p, 4), 0.8), p, 0)),
}


def top(p, k):
    kept = np.where(p >= np.sort(p)[-k], p, 0)
    return kept / kept.sum()


def crossing(p, top_p):
    """The probability of the token that crosses `top_p`, which stays."""
    best = np.sort(p)[::-1]
    return best[np.searchsorted(np.cumsum(best), top_p)]


@pytest.mark.parametrize("name", CASES)
def test_tokens_are_drawn_as_often_as_they_should(name):
    settings, expected = CASES[name]
    config, draws = GenerationConfig(method="sample", seed=7, **settings), 20_000
    p = np.exp(log_softmax(LOGITS[1, 2]))
    expected = expected(p) / expected(p).sum()
    logits = ops.convert_to_tensor(np.repeat(LOGITS[1, 2].astype("float32")[None], draws, axis=0))
    drawn = np.bincount(np.asarray(sample(logits, config, 3)), minlength=9)
    assert (drawn[expected == 0] == 0).all()
    deviation = np.sqrt(draws * expected * (1 - expected))
    assert (np.abs(drawn - draws * expected) <= 3 * deviation + 1e-9).all()


def test_a_seed_gives_the_same_text_and_another_seed_another():
    def text(seed):
        config = GenerationConfig(method="sample", seed=seed, max_new_tokens=30)
        return np.asarray(generate_tokens(MarkovSteps(LOGITS, [[1, 2]] * 2, 30), config, Restrictions())["token_ids"])

    np.testing.assert_array_equal(text(1), text(1))
    assert (text(1) != text(2)).any()
    assert (text(1)[0] != text(1)[1]).any()  # each text of a request has a stream of its own


def test_another_method_drops_the_settings_of_the_old_one():
    stored = GenerationConfig(method="beam_search", beams=8, n_best=2, max_new_tokens=9)
    assert stored.replace({"method": "greedy"}) == GenerationConfig(max_new_tokens=9)
    assert stored.replace({"method": "sample", "seed": 3}) == GenerationConfig("sample", max_new_tokens=9, seed=3)
    assert stored.replace({"beams": 4}) == GenerationConfig("beam_search", 9, beams=4, n_best=2)
    for settings, message in (
        ({"top_p": 0.9}, "'top_p' applies only to method=sample, but method is 'beam_search'"),
        ({"method": "greedy", "n_best": 2}, "'n_best' applies only to method=beam_search"),
        ({"method": "gredy"}, "'gredy'"),
        ({"n_best": 9}, "n_best=9 is above beams=8"),
    ):
        with pytest.raises(ConfigError, match=message):
            stored.replace(settings)
