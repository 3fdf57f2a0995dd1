"""Served generation and scoring, against `TextGenerator` and `TextScorer` in Python."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from exports import ask, decoder

from bert_tf.errors import ConfigError, DataError
from bert_tf.export import ServedGeneration
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from bert_tf.models import T5, T5Config, T5Decoder, T5DecoderConfig
from bert_tf.objectives import Denoising, TextToText
from bert_tf.tokenizers import train_bpe, train_unigram
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES

CORPUS = ["the state of the union is strong, and the people of the union know it.", "안녕하세요 여러분, 🙂 다시."] * 30
PROMPTS = ["the", "the people of the union", "안녕 여러분 🙂", "strong, and the\n"]
CONTINUATIONS = [" union", ",", " 다시", " it"]
LENGTH, NEW = 40, 8
SIZES = {"num_layers": 1, "num_heads": 2, "head_size": 6, "intermediate_size": 28}


@pytest.fixture(scope="module")
def gpt():
    """(objective, tokenizer)"""
    return decoder(CORPUS)


@pytest.fixture(scope="module")
def t5():
    keras.utils.set_random_seed(3)  # first: it clears TensorFlow's caches, where SentencePiece has its model
    tokenizer = train_unigram(CORPUS, 90, family="t5", character_coverage=1.0)
    model = T5(T5Config(tokenizer.vocabulary_size + 10, 20, **SIZES))
    for variable in model.trainable_variables:  # wide, so that the best token is clearly the best
        variable.assign(variable + 0.3 * np.random.default_rng(1).normal(size=variable.shape))
    return Denoising(model), tokenizer


@pytest.fixture(scope="module")
def pairs(gpt):
    """A GPT that was pretrained on pairs of texts."""
    return TextToText(gpt[0].backbone), gpt[1]


@pytest.fixture(scope="module")
def prefix(t5):
    """A decoder that reads its source in both directions."""
    keras.utils.set_random_seed(3)
    return Denoising(T5Decoder(T5DecoderConfig(t5[1].vocabulary_size + 10, 20, **SIZES, prefix=True))), t5[1]


def generator(objective, tokenizer):
    return TextGenerator(objective.backbone, tokenizer, frame=objective.frame(tokenizer))


def check_texts(answer, wanted):
    """An answer is that of `TextGenerator`; where beam search found fewer than n texts, it has "", -1e9 and 0."""
    n = answer["texts"].shape[1]
    rows = [[(g.text, g.score, len(g.token_ids)) for g in row] + [("", -1e9, 0)] * (n - len(row)) for row in wanted]
    texts, scores, lengths = np.moveaxis(np.array(rows, object), -1, 0)
    assert [[text.decode() for text in row] for row in answer["texts"]] == texts.tolist()
    assert answer["lengths"].tolist() == lengths.tolist()
    np.testing.assert_allclose(answer["scores"], scores.astype("float32"), rtol=1e-4, atol=1e-5)


SAMPLE = {"method": "sample", "top_k": 20, "top_p": 0.9, "seed": 4, "stop_strings": ("th", "e.")}
BEAMS = {"method": "beam_search", "beams": 3, "n_best": 2, "no_repeat_ngram": 2, "min_new_tokens": 2}


CASES = {"gpt-sample": ("gpt", SAMPLE, False), "t5-sample": ("t5", SAMPLE, True), "beams": ("prefix", BEAMS, True)}


@pytest.mark.slow_except("gpt-sample", "t5-sample")
@pytest.mark.parametrize("kind, settings, static", CASES.values(), ids=CASES)
def test_texts_are_those_of_python(kind, settings, static, request):
    objective, tokenizer = request.getfixturevalue(kind)
    config = GenerationConfig(max_new_tokens=NEW, **settings)
    module = ServedGeneration(objective, tokenizer, LENGTH, static=static, max_new_tokens=NEW, **settings)
    prompts = [*PROMPTS, ""]
    wanted = generator(objective, tokenizer)(prompts, config)
    assert len({g.text for row in wanted for g in row}) >= 3
    traced = module.signatures()["serving_default"].traced()
    check_texts(ask(traced, text=prompts), wanted)


@pytest.mark.slow_except("gpt-sample")
@pytest.mark.parametrize("kind, method", [("gpt", "sample"), ("t5", "beam_search")])
def test_settings_of_each_text(kind, method, request):
    """Each text of a batch with settings of its own is that which it gets alone from Python."""
    objective, tokenizer = request.getfixturevalue(kind)
    each = {"max_new_tokens": [2, 8], "min_new_tokens": [0, 3]}
    if method == "sample":
        each |= {"seed": [5, 2**31 - 1], "temperature": [0.5, 2.0], "top_k": [20, 9], "top_p": [1.0, 0.8]}
    settings = {"top_k": 20} if method == "sample" else {"beams": 3, "n_best": 3}
    module = ServedGeneration(objective, tokenizer, LENGTH, method=method, max_new_tokens=NEW, **settings)
    generate = TextGenerator(objective.backbone, tokenizer)
    kinds = {name: "float32" if isinstance(values[0], float) else "int32" for name, values in each.items()}
    cast = {name: np.array(values, kinds[name]) for name, values in each.items()}
    answer = ask(module.signatures()["generate"].traced(), text=PROMPTS[:2], **cast)
    for i, prompt in enumerate(PROMPTS[:2]):
        own = {name: values[i] for name, values in each.items()}
        config = dataclasses.replace(module.config, **own)
        check_texts({name: value[i : i + 1] for name, value in answer.items()}, generate([prompt], config))


@pytest.mark.slow_except("gpt-True", "t5-False")
@pytest.mark.parametrize("kind, static", [("gpt", True), ("t5", False), ("pairs", False)])
def test_scores_are_those_of_python(kind, static, request):
    objective, tokenizer = request.getfixturevalue(kind)
    module = ServedGeneration(objective, tokenizer, LENGTH, static=static, max_new_tokens=NEW)
    scorer = TextScorer(objective.backbone, tokenizer, frame=objective.frame(tokenizer))
    wanted = scorer.continuations(list(zip(PROMPTS, CONTINUATIONS)))
    answer = ask(module.signatures()["score"].traced(), text=PROMPTS, continuation=CONTINUATIONS)
    np.testing.assert_allclose(answer["log_likelihood"], [score.log_likelihood for score in wanted], rtol=1e-4)
    assert answer["tokens"].tolist() == [score.tokens for score in wanted]


def test_a_target_needs_room_for_its_end(t5):
    assert "score" not in ServedGeneration(*t5, LENGTH, max_new_tokens=1).signatures()
    module = ServedGeneration(*t5, LENGTH, max_new_tokens=2)
    # The requests of an export's own trial.
    inputs = {key: np.asarray(value) for key, value in module.trial_inputs("score").items()}
    ask(module.signatures()["score"].traced(), **inputs)


def test_long_and_empty_prompts(gpt, tmp_path):
    objective, tokenizer = gpt
    module = ServedGeneration(objective, tokenizer, 6, max_new_tokens=NEW)
    long = "the people know it, " + PROMPTS[1]
    kept = tokenizer.decode(tokenizer.encode(long)[-6:])
    ((wanted,),) = TextGenerator(objective.backbone, tokenizer)([kept], module.config)
    answer = ask(module.answer_text, text=[long, "", tokenizer.special_tokens[0]])
    assert answer["texts"][0, 0].decode() == wanted.text
    assert answer["texts"][1] == answer["texts"][2] and answer["texts"][1, 0]
    # A context too long to be scored loses its begin: 13 tokens stay, of six of a prompt and eight new.
    score = ask(module.answer_score, text=[long * 3], continuation=[" union"])
    count = int(score["tokens"][0])
    kept = tokenizer.decode(tokenizer.encode(long * 3 + " union")[-13:-count])
    (alone,) = TextScorer(objective.backbone, tokenizer).continuations([(kept, " union")])
    assert score["log_likelihood"][0] == pytest.approx(alone.log_likelihood, rel=1e-4)


def test_another_method_than_that_of_the_task(gpt):
    stored = GenerationConfig("beam_search", NEW, beams=3, n_best=2)
    module = ServedGeneration(*gpt, LENGTH, base=stored, method="greedy")
    assert module.config == GenerationConfig(max_new_tokens=NEW)


def test_wrong_requests(gpt):
    objective, tokenizer = gpt
    module = ServedGeneration(objective, tokenizer, LENGTH, method="sample", top_k=9, max_new_tokens=NEW)
    right = {"max_new_tokens": [2], "min_new_tokens": [0], "seed": [0], "top_k": [3]}
    right = {key: np.array(value, "int32") for key, value in right.items()}
    right |= {"temperature": np.array([1.0], "float32"), "top_p": np.array([1.0], "float32")}
    for name, wrong, message in (
        ("max_new_tokens", 9, "max_new_tokens must be at least 1 and at most 8; the request has(?s:.*)9"),
        ("min_new_tokens", -1, "min_new_tokens must be at least 0"),
        ("min_new_tokens", 3, r"min_new_tokens must be at most max_new_tokens; .* max_new_tokens(?s:.*)3,? 2"),
        ("top_k", 10, "top_k must be at least 1 and at most 9"),
        ("temperature", 0.0, "temperature must be above 0"),
        ("top_p", 1.5, "top_p must be above 0.0 and at most 1.0"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            ask(module.answer_with, text=["the"], **right | {name: np.array([wrong], right[name].dtype)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many seed as text"):
        ask(module.answer_with, text=["the"], **right | {"seed": np.zeros(2, "int32")})
    for continuation, message in (("", "has no token to be scored"), ("the people of it " * 19, "more than 47 tokens")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            ask(module.answer_score, text=["the", "the"], continuation=[" union", continuation])
    with pytest.raises(ConfigError, match="model has 48 positions"):
        ServedGeneration(objective, tokenizer, 45, max_new_tokens=NEW)
    with pytest.raises(ConfigError, match="'seed' applies only to method=sample"):
        ServedGeneration(objective, tokenizer, LENGTH, seed=3)
    with pytest.raises(ConfigError, match="stop_tokens is 'the'; it must be a list of tokens"):
        ServedGeneration(objective, tokenizer, LENGTH, max_new_tokens=NEW, stop_tokens="the")


def test_a_tokenizer_without_special_tokens(gpt):
    """GPT-1's: no signature `score`, and a prompt must have a token."""
    objective, _ = gpt
    tokenizer = train_bpe(CORPUS, 120, cleaning="gpt1", role_tokens=GPT1_ROLES, layout="none")
    module = ServedGeneration(objective, tokenizer, 8, max_new_tokens=4)
    assert set(module.signatures()) == {"serving_default", "generate"}
    assert b"" not in module.trial_inputs("serving_default")["text"].numpy().tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no token; give at least one word"):
        module.answer_text(tf.constant(["the", " "]))
    with pytest.raises(DataError, match="the prompt ' ' has no token; give at least one word"):
        generator(objective, tokenizer)(["the", " "], module.config)
