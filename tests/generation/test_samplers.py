"""A sampler from outside."""

import numpy as np
import pytest
from keras import ops
from markov import MarkovSteps

from bert_tf.errors import ConfigError
from bert_tf.generation import SAMPLERS, DecoderSteps, GenerationConfig, Restrictions, Sampler, TextGenerator
from bert_tf.models import GPT2Config, GPT2Decoder
from bert_tf.tokenizers import train_byte_level_bpe


class Second(Sampler):
    name = "second"

    def choose(self, logits, config, index, each):
        return ops.cast(ops.top_k(logits, 2)[1][:, 1], "int32")


@pytest.fixture
def second():
    yield SAMPLERS.register(Second())
    SAMPLERS.remove("second")


def test_a_sampler_from_outside(second):
    tokenizer = train_byte_level_bpe(["the people of the united states"] * 3, 270)
    sizes = {"num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 64}
    model = GPT2Decoder(GPT2Config(tokenizer.vocabulary_size, 16, **sizes))
    config = GenerationConfig(method="second", max_new_tokens=4)
    (answer,) = TextGenerator(model, tokenizer)(["the"], config)[0]
    ids = list(TextGenerator(model, tokenizer).prompts.ids("the"))
    for token_id in answer.token_ids:
        states = model({"token_ids": np.array([ids]), "padding_mask": np.ones((1, len(ids)), bool)})["sequence_output"]
        assert token_id == np.argsort(np.asarray(model.output_logits(states))[0, -1])[-2]
        ids.append(token_id)
    assert "".join(TextGenerator(model, tokenizer).stream("the", config)) == answer.text
    steps = DecoderSteps(model, np.array([[5, 6]]), np.ones((1, 2), bool), max_new_tokens=3)
    assert SAMPLERS["second"].generate(steps, config, Restrictions())["token_ids"].shape == (1, 1, 3)


def test_a_method_that_there_is_not():
    with pytest.raises(ConfigError, match="'method' is 'second'; known: beam_search, greedy, sample"):
        GenerationConfig(method="second")


def test_samplers_may_read_the_same_settings_and_choose_by_themselves(second, monkeypatch):
    monkeypatch.setattr(Second, "settings", ("temperature",))
    assert GenerationConfig(method="sample", temperature=0.7) and GenerationConfig(method="second", temperature=0.7)
    with pytest.raises(ConfigError, match="'temperature' applies only to method=sample"):
        GenerationConfig(temperature=0.7)
    steps = MarkovSteps(np.broadcast_to(np.arange(5.0), (5, 5, 5)), [[1, 2]], 3)
    found = [SAMPLERS[name].generate(steps, GenerationConfig(), Restrictions()) for name in ("greedy", "second")]
    assert [np.asarray(one["token_ids"]).tolist() for one in found] == [[[[4, 4, 4]]], [[[3, 3, 3]]]]


def test_tokens_are_a_list():
    with pytest.raises(ConfigError, match="stop_tokens is 'the'; it must be a list of tokens"):
        TextGenerator(None, None, stop_tokens="the")
