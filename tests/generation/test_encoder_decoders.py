"""Text to text with a T5, against loops without a cache; tests/models/test_t5.py has `generate` of transformers."""

import keras
import numpy as np
import pytest
from numeric import log_softmax

from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import GenerationConfig, PromptTokenizer, TextGenerator, TextScorer
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.t5.config import T5Config
from bert_tf.models.t5.model import T5
from bert_tf.tokenizers import train_unigram

TEXTS = ["the state of the union is strong", "the people of the union know it"]
PROMPTS = ["the", "the people of the union know", "state of it", TEXTS[0]]


@pytest.fixture(scope="module")
def tokenizer():
    keras.utils.set_random_seed(1)  # first: it clears TensorFlow's caches, where SentencePiece has its model
    return train_unigram(TEXTS * 20, 30, family="t5")


@pytest.fixture(scope="module")
def model(tokenizer):
    """A random T5 with more rows than tokens, as the published ones."""
    sizes = {"num_layers": 1, "num_heads": 3, "head_size": 6, "intermediate_size": 28}
    model = T5(T5Config(tokenizer.vocabulary_size + 90, 20, **sizes))
    for variable in model.weights:
        variable.assign(variable + 0.3 * np.random.default_rng(1).normal(size=variable.shape))
    return model


def log_p_of(model, source, written):
    """log p of the token after each of `written`, float64 [T, V]."""
    x = model({"token_ids": np.array([source]), "decoder_token_ids": np.array([written])})["sequence_output"]
    return log_softmax(model.output_logits(x))[0]


def greedily(model, tokenizer, source, new):
    written, score = [tokenizer.pad_id], 0.0
    for _ in range(new):
        log_p = log_p_of(model, source, written)[-1]
        written.append(int(log_p[: tokenizer.vocabulary_size].argmax()))
        score += log_p[written[-1]]
        if written[-1] == tokenizer.sep_id:
            break
    return written[1:], score


def test_a_prompt_ends_with_the_end_token_and_a_batch_gives_what_each_gives_alone(model, tokenizer):
    generate, lengths, config = TextGenerator(model, tokenizer), set(), GenerationConfig(max_new_tokens=5)
    for prompt, (answer,) in zip(PROMPTS, generate(PROMPTS, config), strict=True):
        source = [*tokenizer.encode(prompt), tokenizer.token_to_id("</s>")]
        ids, score = greedily(model, tokenizer, source, 5)
        assert answer.token_ids == ids and answer.score == pytest.approx(score, rel=1e-4)
        lengths.add(len(source))
    assert len(lengths) > 2
    assert "".join(generate.stream(prompt, config)) == answer.text
    config = GenerationConfig(max_new_tokens=5, method="sample", seed=3)
    assert generate(PROMPTS, config)[0][0].token_ids == generate(PROMPTS[:1], config)[0][0].token_ids


def test_rows_without_a_token_are_never_chosen(model, tokenizer):
    generate = TextGenerator(model, tokenizer)
    found = generate(["the"] * 12, GenerationConfig(method="sample", temperature=50.0, max_new_tokens=12))
    ids = {i for (answer,) in found for i in answer.token_ids}
    assert max(ids) < tokenizer.vocabulary_size and len(ids) > 50


def test_targets_have_the_log_likelihood_of_their_tokens_and_of_the_end(model, tokenizer):
    scorer = TextScorer(model, tokenizer, batch_size=2)
    pairs = [("the state of", "the union"), ("the", "people know it"), (TEXTS[0], "union")]
    greedy = TextGenerator(model, tokenizer)(["the"], GenerationConfig(max_new_tokens=2))[0][0]
    for (source, target), score in zip(pairs, scorer.continuations(pairs), strict=True):
        ids = [tokenizer.pad_id, *tokenizer.encode(target), tokenizer.sep_id]
        log_p = log_p_of(model, [*tokenizer.encode(source), tokenizer.sep_id], ids[:-1])
        assert score.log_likelihood == pytest.approx(sum(log_p[i, ids[i + 1]] for i in range(len(ids) - 1)), rel=1e-4)
        assert (score.tokens, score.characters) == (len(ids) - 1, len(target))
        assert score.is_greedy == (log_p.argmax(-1).tolist() == ids[1:])
    assert not greedy.finished  # a text that greedy generation does not end is not the greedy one
    assert not scorer.continuations([("the", greedy.text)])[0].is_greedy
    message = "perplexity needs a decoder that continues texts, and t5 is an encoder-decoder"
    with pytest.raises(ConfigError, match=message):
        scorer.perplexity(["the"])


def test_bad_prompts_and_models_are_refused(model, tokenizer):
    prompts = PromptTokenizer(model, tokenizer)
    assert prompts.ids("") == [tokenizer.sep_id]  # "</s>" alone, as transformers' tokenizer has it
    with pytest.raises(DataError, match="the vocabulary has none of the words of the prompt '안녕'"):
        prompts.rows(["안녕"])
    encoder = BertEncoder(BertConfig(200, hidden_size=4, num_layers=1, num_heads=1, intermediate_size=4))
    with pytest.raises(ConfigError, match="does not continue texts"):
        TextScorer(encoder, tokenizer)
    small = T5(T5Config(50, 4, num_layers=1, num_heads=1, head_size=4, intermediate_size=4))
    with pytest.raises(ConfigError, match="the tokenizer has .* tokens, t5 has rows for 50"):
        TextGenerator(small, tokenizer)
