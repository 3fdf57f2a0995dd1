"""Prompts to texts with a small random GPT-2, against loops without a cache."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numeric import log_softmax

from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import DecoderSteps, GenerationConfig, StopStrings, TextGenerator, TextScorer, sampling
from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.sampling import generate_tokens
from bert_tf.generation.scoring import windows_of
from bert_tf.models import GPT2Config, GPT2Decoder
from bert_tf.tokenizers import Frame, WordPieceTokenizer
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES
from bert_tf.tokenizers.bpe.training import train_byte_level_bpe

TEXTS = ["the state of the union is strong, and the people of the union know it."] * 30
TEXTS += ["안녕하세요 여러분, 다시 만나서 반갑습니다."] * 30
PROMPTS = ["the", "the people of the union", "안녕 여러분", "strong, and the"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_level_bpe(TEXTS, 300, role_tokens=GPT2_ROLES, layout="none")


@pytest.fixture(scope="module")
def model(tokenizer):
    return gpt(tokenizer.vocabulary_size)


@pytest.fixture(scope="module")
def generate(model, tokenizer):
    """One for all tests: its graphs are slow to make."""
    return TextGenerator(model, tokenizer)


def gpt(vocabulary_size):
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 40, "max_positions": 48}
    # Wide initial weights, so that the best token is clearly the best.
    return GPT2Decoder(GPT2Config(vocabulary_size, **sizes, initializer_range=0.6))


def logits_of(model, ids):
    x = model({"token_ids": np.array([ids], "int32")})["sequence_output"]
    return np.asarray(model.output_logits(x))[0]


def greedily(model, ids, new, stop_ids):
    """The new tokens and their log-probability, computed from the whole text each time."""
    ids, score, start = list(ids), 0.0, len(ids)
    for _ in range(new):
        log_p = log_softmax(logits_of(model, ids)[-1])
        score += log_p.max()
        ids.append(int(log_p.argmax()))
        if ids[-1] in stop_ids:
            break
    return ids[start:], score


def test_prompts_of_unequal_length_give_what_each_gives_alone_without_a_cache(generate, model, tokenizer):
    found = generate(PROMPTS, GenerationConfig(max_new_tokens=12))
    assert len({len(tokenizer.encode(prompt)) for prompt in PROMPTS}) > 2
    for prompt, (answer,) in zip(PROMPTS, found, strict=True):
        ids, score = greedily(model, tokenizer.encode(prompt), 12, generate.stop_ids)
        assert answer.token_ids == ids
        assert answer.score == pytest.approx(score, rel=1e-4)
        assert answer.text == tokenizer.decode([i for i in ids if i not in generate.stop_ids])
        assert answer.finished == (ids[-1] in generate.stop_ids)


@pytest.mark.parametrize("method", ["sample", "beam_search"])
def test_other_methods_are_alike_in_a_batch_and_alone(generate, method):
    options = {"top_k": 20} if method == "sample" else {"n_best": 2}
    config = GenerationConfig(method=method, max_new_tokens=8, no_repeat_ngram=2, **options)
    found = generate(PROMPTS, config)
    alone = generate(PROMPTS[:1], config)[0]
    assert [a.token_ids for a in alone] == [a.token_ids for a in found[0]]
    assert [a.score for a in alone] == pytest.approx([a.score for a in found[0]], rel=1e-4)
    assert all(len(answers) == (1 if method == "sample" else 2) for answers in found)


def test_another_seed_takes_the_same_graph(model, tokenizer, monkeypatch):
    traced = []
    whole = sampling.generate_tokens
    monkeypatch.setattr(sampling, "generate_tokens", lambda *_: traced.append(1) or whole(*_))
    generate = TextGenerator(model, tokenizer)
    configs = [GenerationConfig(method="sample", seed=seed, max_new_tokens=3) for seed in (1, 2, 1)]
    texts = [generate(["the"], config)[0][0].text for config in configs]
    assert texts[0] != texts[1] and texts[0] == texts[2] and len(traced) == 1


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_a_stream_is_the_text_in_pieces(generate, method):
    config = GenerationConfig(method=method, max_new_tokens=12)
    for prompt in PROMPTS[:3]:
        pieces = list(generate.stream(prompt, config))
        assert "".join(pieces) == generate([prompt], config)[0][0].text
        assert all(pieces)


def test_a_text_ends_before_a_stop_string(generate, tokenizer):
    whole = generate(["the people"], GenerationConfig(max_new_tokens=12))[0][0].text
    stop = whole[3:5]
    config = GenerationConfig(max_new_tokens=12, stop_strings=(stop,))
    answer = generate(["the people"], config)[0][0]
    assert answer.text == whole[: whole.index(stop)] and answer.finished
    assert stop in tokenizer.decode(answer.token_ids) and stop not in tokenizer.decode(answer.token_ids[:-1])
    assert len(answer.token_ids) < 12  # the computation stops there, too
    assert "".join(generate.stream("the people", config)) == answer.text
    assert generate.stop_strings(config) is generate.stop_strings(config)  # checked once, not at every token


def test_prompt_and_text_read_as_one_text(model):
    """The space between them is that of WordPiece's first new token."""
    tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the union ##s .".split())
    ids = tokenizer.encode("unions the.")
    answering = Frame.for_answers_in_shards(tokenizer)
    for frame, text, piece in ((None, " unions the.", "s"), (answering, "unions the.", "##s")):
        generate = TextGenerator(model, tokenizer, frame=frame)
        assert generate.prompts.text(ids) == text
        stop = generate.stop_strings(GenerationConfig(stop_strings=("the union",)))
        assert stop.texts(np.array([ids]), np.array([len(ids)])).numpy()[0].decode() == text
        assert generate.prompts.text(ids[1:2]) == piece


def test_a_stop_string_that_no_text_has_is_refused(model):
    generate = TextGenerator(model, WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the union ##s .".split()))
    for written in ("the union", "nio"):  # also a part of a word
        generate.stop_strings(GenerationConfig(stop_strings=(written,)))
    message = r"cannot write the stop string 'The': it reads 'a The a' as .*choose another"
    with pytest.raises(ConfigError, match=message):
        generate(["the"], GenerationConfig(max_new_tokens=4, stop_strings=("the", "The")))


def test_a_text_ends_at_the_earliest_of_the_stop_strings(tokenizer):
    ids = tokenizer.encode("the people of the union")
    for strings in (("ople", "peop", "of"), ("of", "peop", "ople")):
        stop = StopStrings(strings, tokenizer, not_shown_ids=())
        assert stop.cut("the people of the union") == ("the ", True)
        assert stop.texts(np.array([ids]), np.array([len(ids)])).numpy()[0] == b"the "
    assert stop.cut("union") == ("union", False)


def test_an_empty_prompt_is_the_token_that_begins_texts(generate, model, tokenizer):
    start = tokenizer.token_to_id("<|endoftext|>")  # as in the text generation of transformers
    ids, score = greedily(model, [start], 6, generate.stop_ids)
    found = generate(["", "the"], GenerationConfig(max_new_tokens=6))[0][0]
    assert found.token_ids == ids and found.score == pytest.approx(score, rel=1e-4)
    assert "".join(generate.stream("", GenerationConfig(max_new_tokens=6))) == found.text


def test_only_allowed_tokens_are_generated(model, tokenizer):
    allowed = [tokenizer.vocabulary[i] for i in (200, 210)]
    generate = TextGenerator(model, tokenizer, allowed_tokens=allowed)
    ids = generate(["the"], GenerationConfig(method="sample", max_new_tokens=20))[0][0].token_ids
    assert set(ids) <= {200, 210, *generate.stop_ids}
    with pytest.raises(ConfigError, match="no token 'no such token'"):
        TextGenerator(model, tokenizer, stop_tokens=["no such token"])


def test_bad_prompts_are_refused(generate):
    for prompts, message in (
        (["the " * 40], "are more than the model's 48 positions"),
        ([], "no prompts"),
        (["the", 5], "a text must be a str, got 5"),
    ):
        with pytest.raises(DataError, match=message):
            generate(prompts, GenerationConfig(max_new_tokens=20))
    with pytest.raises(ConfigError, match="beam_search only knows its text at the end"):
        next(generate.stream("the", GenerationConfig(method="beam_search")))


def test_one_text_without_a_list_is_not_read_character_by_character(generate, model, tokenizer):
    scorer = TextScorer(model, tokenizer)
    for function in (generate, scorer.perplexity, scorer.tokens):
        with pytest.raises(DataError, match=r"'the people' is one text; give a list of texts, \['the people'\]"):
            function("the people")


@pytest.mark.parametrize("shape", [(None, None), (2, 3)])
def test_a_graph_holds_the_layers_for_prompts_and_for_tokens(shape, model, monkeypatch):
    """What an export holds: sizes, where they are not known, and the number of new tokens are inputs."""
    texts, decoded = [tf.TensorSpec(shape, dtype) for dtype in (tf.int32, tf.bool)], []
    decode = model.decode
    monkeypatch.setattr(model, "decode", lambda *arguments: decoded.append(arguments) or decode(*arguments))

    @tf.function(input_signature=[*texts, tf.TensorSpec([], tf.int32)])
    def function(token_ids, mask, new):
        steps = DecoderSteps(model, token_ids, mask, new)
        return generate_tokens(steps, GenerationConfig(), Restrictions())["token_ids"]

    for size, new in ((3, 5), (shape[1] or 1, 9)):
        ids = np.random.default_rng(size).integers(1, 200, (2, size)).astype("int32")
        found = function(ids, np.ones((2, size), bool), new).numpy()
        assert found.shape == (2, new)
        assert found[1].tolist() == greedily(model, ids[1], new, ())[0]
    assert len(decoded) == 2


def test_continuations_have_the_log_likelihood_of_their_tokens(generate, model, tokenizer):
    scorer = TextScorer(model, tokenizer, batch_size=2)
    pairs = [("the state of", " the union"), ("", "the"), ("안녕", "하세요"), ("the people", " of the people of it")]
    for (context, continuation), score in zip(pairs, scorer.continuations(pairs), strict=True):
        ids, begin = tokenizer.encode(context + continuation), len(tokenizer.encode(context)) - 1
        if not context:  # the row begins as the generator's does
            ids, begin = [scorer.start_id, *ids], 0
        log_p = log_softmax(logits_of(model, ids))
        expected = sum(log_p[i - 1, ids[i]] for i in range(begin + 1, len(ids)))
        assert score.log_likelihood == pytest.approx(expected, rel=1e-4)
        assert (score.tokens, score.characters) == (len(ids) - 1 - begin, len(continuation))
        assert score.bytes == len(continuation.encode())
        best = log_p.argmax(-1)
        assert score.is_greedy == all(best[i - 1] == ids[i] for i in range(begin + 1, len(ids)))
    answer = generate(["the state of"], GenerationConfig(max_new_tokens=3))[0][0]
    assert scorer.continuations([("the state of", answer.text)])[0].is_greedy
    with pytest.raises(DataError, match="continuation of 'the' is empty"):
        scorer.continuations([("the", "")])


def test_ranks_are_among_the_tokens_of_the_vocabulary(tokenizer):
    """A table may have more rows; they are never generated."""
    model = gpt(tokenizer.vocabulary_size + 40)
    ((ids, _, ranks),) = TextScorer(model, tokenizer).tokens(["the state of the union"])
    logits = logits_of(model, [TextScorer(model, tokenizer).start_id, *ids])[:-1]
    own = logits[np.arange(len(ids)), ids][:, None]
    assert ranks.tolist() == (logits[:, : tokenizer.vocabulary_size] > own).sum(-1).tolist()
    assert (logits > own).sum() > ranks.sum()


def test_perplexity_counts_every_token_once(model, tokenizer):
    scorer, text = TextScorer(model, tokenizer), "the state of the union is strong, 여러분 and the people know it. " * 2
    ids = [scorer.start_id, *tokenizer.encode(text)]
    assert len(ids) > 40
    expected = 0.0
    for begin, end, new in windows_of(len(ids), 20, 8):
        log_p = log_softmax(logits_of(model, ids[begin:end]))
        expected -= sum(log_p[i - 1 - begin, ids[i]] for i in range(new, end))
    shown = []
    scorer.batch_size = 1  # as many calls as there are
    found = scorer.perplexity([text], length=20, stride=8, progress=lambda result, fraction: shown.append(fraction))
    assert 0 < shown[0] < 1 and shown == sorted(shown)
    assert found.nll == pytest.approx(expected, rel=1e-4)
    assert (found.tokens, found.words, found.bytes) == (len(ids) - 1, len(text.split()), len(text.encode()))
    assert found.per_token == pytest.approx(np.exp(expected / found.tokens), rel=1e-4)
    assert found.bits_per_byte == pytest.approx(expected / found.bytes / np.log(2), rel=1e-4)


def test_without_a_start_token_the_first_token_is_context(model, tokenizer):
    scorer, text = TextScorer(model, tokenizer), "the state of the union"
    scorer.start_id = None  # as with GPT-1's tokenizer
    ids = tokenizer.encode(text)
    log_p = log_softmax(logits_of(model, ids))
    values = [log_p[i - 1, ids[i]] for i in range(1, len(ids))]
    begin = len(tokenizer.encode("the state"))
    (score,) = scorer.continuations([("the state", " of the union")])
    assert score.log_likelihood == pytest.approx(sum(values[begin - 1 :]), rel=1e-4)
    assert score.tokens == len(ids) - begin
    found = scorer.perplexity([text, ""], length=8, stride=7)
    assert found.tokens == len(values) > 4
    rest = text[len(tokenizer.decode(ids[:1])) :]
    assert (found.words, found.bytes) == (len(rest.split()), len(rest.encode()))
    with pytest.raises(DataError, match="'the' needs a context"):
        scorer.continuations([("", "the")])


@pytest.mark.parametrize("total, length, stride", [(10, 6, 3), (10, 6, 5), (7, 7, 6), (30, 8, 1), (2, 8, 4), (1, 8, 4)])
def test_windows(total, length, stride):
    windows = list(windows_of(total, length, stride))
    predicted = [i for begin, end, new in windows for i in range(new, end)]
    assert predicted == list(range(1, total))
    for begin, end, new in windows:
        assert end - begin <= length and begin < new
        assert new == 1 or new - begin >= length - stride
