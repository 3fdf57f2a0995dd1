import itertools

import numpy as np
import pytest
from markov import MarkovSteps
from numeric import log_softmax

from bert_tf.generation import GenerationConfig, beam_search
from bert_tf.generation.restrictions import Restrictions

STOP = 0


def table(size, seed):
    return np.random.default_rng(seed).normal(0, 2, (size, size, size))


def penalty(length, alpha, variant):
    return length**alpha if variant == "huggingface" else ((5 + length) / 6) ** alpha


def every_text(logits, prompt, limit, alpha, variant):
    """All texts up to `limit` tokens with their scores, float64, best first: those with a stop token, and the cut."""
    log_p, size = log_softmax(logits), len(logits)
    finished, cut = [], []
    for length in range(1, limit + 1):
        for text in itertools.product(range(size), repeat=length):
            ends = text[-1] == STOP
            if STOP in text[:-1] or (not ends and length < limit):
                continue
            tokens = (*prompt, *text)
            score = sum(log_p[tokens[i], tokens[i + 1], tokens[i + 2]] for i in range(length))
            (finished if ends else cut).append((score / penalty(length, alpha, variant), text))
    texts = sorted(finished + cut if variant == "huggingface" else finished or cut, reverse=True)
    return texts


@pytest.mark.parametrize("variant", ["tensor2tensor", "huggingface"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_with_beams_for_every_text_the_search_is_exhaustive(variant, alpha):
    logits, limit, prompts = table(4, seed=int(10 * alpha)), 3, [[1, 2], [3, 1]]
    settings = {"beams": 40, "n_best": 5, "length_penalty": alpha, "max_new_tokens": limit, "beam_variant": variant}
    config = GenerationConfig(method="beam_search", **settings)
    found = beam_search(MarkovSteps(logits, prompts, limit), config, Restrictions(stop_ids=(STOP,)), filler=-1)
    for row, prompt in enumerate(prompts):
        for place, (score, text) in enumerate(every_text(logits, prompt, limit, alpha, variant)[:5]):
            length = int(found["lengths"][row, place])
            assert np.asarray(found["token_ids"][row, place]).tolist() == [*text, *[-1] * (limit - len(text))]
            assert length == len(text)
            np.testing.assert_allclose(found["scores"][row, place], score, rtol=1e-5)


def few_beams(logits, prompt, limit, k, n_best, alpha, variant, stops):
    """The search with k beams on Python lists: texts with their scores, best first."""
    log_p, alive, finished = log_softmax(logits), [(0.0, ())], []
    for length in range(1, limit + 1):
        grown = []
        for score, text in alive:
            before, last = (*prompt, *text)[-2:]
            grown += [(score + log_p[before, last, token], (*text, token)) for token in range(len(logits))]
        grown = sorted(grown, reverse=True)[: k * max(2, 1 + len(stops))]
        ended = [(score, text) for score, text in grown if text[-1] in stops]
        if variant == "huggingface":
            ended = [pair for pair in (grown if length == limit else ended) if pair in grown[:k]]
        finished += [(score / penalty(length, alpha, variant), text) for score, text in ended]
        finished = sorted(finished, reverse=True)[:k]
        alive = [pair for pair in grown if pair[1][-1] not in stops][:k]
        best_possible = alive[0][0] / penalty(limit, alpha, variant)
        enough = k if variant == "huggingface" else n_best
        if len(finished) >= enough and best_possible <= finished[-1][0]:
            break
    return (finished or [(score / penalty(length, alpha, variant), text) for score, text in alive])[:n_best]


@pytest.mark.parametrize("variant", ["tensor2tensor", "huggingface"])
@pytest.mark.parametrize("beams, stops, alpha", [(3, (0,), 0.6), (3, (0, 1), 1.5), (1, (0,), 0.6), (40, (0,), 0.0)])
def test_texts_are_those_of_the_port(variant, beams, stops, alpha):
    logits, prompts = table(9, seed=2), [[i % 9, (3 * i + 1) % 9] for i in range(12)]
    settings = {"beams": beams, "n_best": beams, "length_penalty": alpha, "beam_variant": variant}
    config = GenerationConfig(method="beam_search", max_new_tokens=8, **settings)
    found = beam_search(MarkovSteps(logits, prompts, 8), config, Restrictions(stop_ids=stops))
    for row, prompt in enumerate(prompts):
        expected = few_beams(logits, prompt, 8, beams, beams, alpha, variant, stops)
        lengths = np.asarray(found["lengths"][row])
        texts = [tuple(ids[:n].tolist()) for ids, n in zip(np.asarray(found["token_ids"][row]), lengths) if n]
        assert texts == [text for _, text in expected]
        np.testing.assert_allclose(found["scores"][row][: len(texts)], [score for score, _ in expected], rtol=1e-5)


@pytest.mark.parametrize("variant", ["tensor2tensor", "huggingface"])
def test_a_batch_gives_what_each_prompt_gives_alone(variant):
    logits, prompts = table(9, seed=3), [[1, 2], [3, 1], [8, 8], [0, 4]]
    config = GenerationConfig(method="beam_search", beams=3, n_best=3, max_new_tokens=8, beam_variant=variant)
    restrictions = Restrictions(stop_ids=(STOP,), no_repeat_ngram=2)
    together = beam_search(MarkovSteps(logits, prompts, 8), config, restrictions)
    for row, prompt in enumerate(prompts):
        alone = beam_search(MarkovSteps(logits, [prompt], 8), config, restrictions)
        for name in alone:
            np.testing.assert_allclose(alone[name][0], together[name][row], rtol=1e-6)


def test_texts_that_were_not_found_have_no_tokens():
    logits = np.zeros((2, 2, 2))  # the only texts of two tokens: [0], [1, 0], [1, 1]
    config = GenerationConfig(method="beam_search", beams=4, n_best=4, max_new_tokens=2)
    found = beam_search(MarkovSteps(logits, [[1, 1]], 2), config, Restrictions(stop_ids=(STOP,)), filler=-1)
    assert np.asarray(found["lengths"])[0].tolist() == [1, 2, 0, 0]
    assert np.asarray(found["token_ids"])[0, 2:].tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize("variant", ["tensor2tensor", "huggingface"])
def test_texts_with_forbidden_tokens_are_not_found(variant):
    logits, limit = table(4, seed=5), 20  # long, so that the length penalty is above 2
    config = GenerationConfig(method="beam_search", beams=3, n_best=3, max_new_tokens=limit, beam_variant=variant)
    found = beam_search(MarkovSteps(logits, [[1, 2]], limit), config, Restrictions(allowed_ids=(3,)), filler=-1)
    assert np.asarray(found["lengths"])[0].tolist() == [limit, 0, 0]
    assert np.asarray(found["token_ids"])[0].tolist() == [[3] * limit, [-1] * limit, [-1] * limit]
    assert np.asarray(found["scores"])[0, 1:].tolist() == [-1e9, -1e9]
