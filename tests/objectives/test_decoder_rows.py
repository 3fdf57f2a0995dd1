"""Sources and targets in the rows of a decoder: against NumPy, by what is seen, and against the row typed by hand."""

import keras
import numpy as np
import pytest
from keras import ops
from test_text_to_text import SOURCES, TARGETS, rows

from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.generation import GenerationConfig, PromptTokenizer, TextGenerator, TextScorer
from bert_tf.generation.restrictions import Restrictions
from bert_tf.models import GPT2Config, GPT2Decoder, T5Decoder, T5DecoderConfig
from bert_tf.objectives import CausalLM, CausalLMConfig, Denoising, TextToText
from bert_tf.objectives.decoder_rows import source_then_target
from bert_tf.tasks.text_to_text.model import TextToTextModel
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining
from tfrecords import DenoisingConfig

SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24, "dropout": 0.0}


def features(groups=([0], [1], [2]), more=()):
    """The features of three texts, those of a group in one row."""
    names = ("token_ids", "padding_mask", "target_ids", "target_weights", *more)
    return {name: value for name, value in rows(groups).items() if name in names}


def packed():
    return features(([0, 1], [2]), more=("sequence_ids", "decoder_sequence_ids"))


def t5_decoder(prefix=False, seed=0):
    keras.utils.set_random_seed(seed)
    return T5Decoder(T5DecoderConfig(37, head_size=8, prefix=prefix, **SIZES), pooler=False)


def gpt2():
    keras.utils.set_random_seed(0)
    sizes = SIZES | {"attention_dropout": 0.0, "initializer_range": 0.3}
    return GPT2Decoder(GPT2Config(37, max_positions=16, **sizes), pooler=False)


def test_rows_against_numpy():
    inputs, positions = source_then_target(features(), prefix=True)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS)):
        length = len(source) + len(target)
        np.testing.assert_array_equal(inputs["token_ids"][row, :length], source + target)
        np.testing.assert_array_equal(inputs["padding_mask"][row], np.arange(9) < length)
        np.testing.assert_array_equal(inputs["prefix_mask"][row], np.arange(9) < len(source))
        np.testing.assert_array_equal(positions[row, : len(target)], np.arange(len(target)) + len(source) - 1)
    assert inputs.keys() == {"token_ids", "padding_mask", "prefix_mask"}
    assert source_then_target(features(), prefix=False)[0].keys() == {"token_ids", "padding_mask"}


def test_several_texts_of_a_row_stay_together():
    inputs, positions = source_then_target(packed(), prefix=False)
    np.testing.assert_array_equal(inputs["token_ids"][0, :14], SOURCES[0] + TARGETS[0] + SOURCES[1] + TARGETS[1])
    np.testing.assert_array_equal(inputs["sequence_ids"], [[1] * 7 + [2] * 7, [1] * 6 + [0] * 8])
    np.testing.assert_array_equal(inputs["position_ids"][0, :14], [*range(7), *range(7)])
    np.testing.assert_array_equal(positions[0, :8], [3, 4, 5, 8, 9, 10, 11, 12])


@pytest.mark.parametrize("backbone", [t5_decoder(), t5_decoder(prefix=True), gpt2()], ids=["t5", "t5 prefix", "gpt2"])
def test_loss_equals_that_of_each_row_typed_by_hand(backbone):
    model, loss = Denoising(backbone), 0.0
    for source, target in zip(SOURCES, TARGETS):
        row = np.array([source + target])
        inputs = {"token_ids": row}
        if backbone.prefix:
            inputs["prefix_mask"] = np.arange(row.shape[1])[None] < len(source)
        logits = np.asarray(backbone.output_logits(backbone(inputs)["sequence_output"]), "float64")[0]
        normalizers = np.log(np.exp(logits).sum(-1))
        for position, token in enumerate(target, len(source) - 1):
            loss += normalizers[position] - logits[position, token]
    for batch in (features(), packed()):
        found, metrics = model.loss_sums(batch, training=False)
        assert float(found["denoising"]) == pytest.approx(loss, rel=1e-5)
        assert float(metrics["denoising_accuracy"][1]) == float(model.loss_weights(batch)["denoising"]) == 10


@pytest.mark.parametrize(("prefix", "changed", "reached"), [
    (False, 2, range(2, 9)), (False, 5, range(5, 9)), (True, 2, range(9)), (True, 5, range(5, 9)),
])  # fmt: skip
def test_what_a_token_reaches(prefix, changed, reached):
    """A source of 4 tokens; a token of it reaches tokens before it in a prefix LM only."""
    model = t5_decoder(prefix)
    ids, mask = np.arange(3, 12)[None], np.arange(9)[None] < 4
    other = ids.copy()
    other[0, changed] = 30
    inputs = {"prefix_mask": mask} if prefix else {}
    a, b = (np.asarray(model({"token_ids": x, **inputs})["sequence_output"])[0] for x in (ids, other))
    assert np.flatnonzero(np.abs(a - b).max(-1) > 1e-6).tolist() == list(reached)


@pytest.mark.parametrize("prefix", [False, True])
def test_cached_equals_uncached_and_the_prompt_is_the_prefix(prefix):
    """Prompts of 5 and 3 tokens, then 4 tokens one by one."""
    model = t5_decoder(prefix)
    generator = np.random.default_rng(0)
    ids = generator.integers(2, 37, (2, 9)).astype("int32")
    real = np.array([[True] * 9, [False] * 2 + [True] * 7])
    prompt = (np.arange(9) < 5)[None] & real
    inputs = {"token_ids": ids, "padding_mask": real} | ({"prefix_mask": prompt} if prefix else {})
    whole = np.asarray(model(inputs)["sequence_output"])
    cache = model.empty_cache(2, 9)
    x, cache = model.decode(ids[:, :5], cache, 0, real)
    found = [np.asarray(x)]
    for column in range(5, 9):
        x, cache = model.decode(ids[:, column : column + 1], cache, column, real)
        found.append(np.asarray(x))
    np.testing.assert_allclose(np.concatenate(found, 1)[real], whole[real], atol=1e-5)
    without = np.asarray(model({"token_ids": ids, "padding_mask": real})["sequence_output"])
    assert (np.abs(without - whole)[real].max() > 1e-3) == prefix


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] a good bad film in paris the one is . ,".split())


@pytest.fixture(scope="module", params=[False, True], ids=["causal", "prefix"])
def trained(request):
    """A decoder that was pretrained on sources and targets."""
    keras.utils.set_random_seed(2)
    config = T5DecoderConfig(16, head_size=8, prefix=request.param, **SIZES)
    return TextToText(T5Decoder(config, pooler=False))


def test_greedy_texts_after_a_source_equal_those_without_a_cache(trained, tokenizer):
    """A prompt is read as sources were in training: with the separator at its end, and no other special token."""
    model, prompts = trained.backbone, ["a good film in paris", "the one"]
    generate = TextGenerator(model, tokenizer, frame=trained.frame(tokenizer))
    answers = generate(prompts, GenerationConfig(max_new_tokens=5, min_new_tokens=5))
    for prompt, (answer,) in zip(prompts, answers):
        ids = [*tokenizer.encode(prompt), tokenizer.sep_id]
        source = len(ids)
        for _ in range(5):
            inputs = {"prefix_mask": np.arange(len(ids))[None] < source} if model.prefix else {}
            x = model({"token_ids": np.array([ids]), **inputs})["sequence_output"]
            logits = np.array(model.output_logits(x))[0, -1]
            logits[tokenizer.sep_id] = -np.inf  # which would end the text
            ids = [*ids, int(logits.argmax())]
        assert answer.token_ids == ids[source:]


def test_a_target_after_a_source_has_the_score_of_the_loss(trained, tokenizer):
    scorer = TextScorer(trained.backbone, tokenizer, frame=trained.frame(tokenizer))
    pairs = [("a good film", "in paris"), ("the one", "bad . film")]
    for (source, target), found in zip(pairs, scorer.continuations(pairs)):
        source, target = [[*tokenizer.encode(text), tokenizer.sep_id] for text in (source, target)]
        target = np.array([target])
        batch = {"token_ids": np.array([source]), "target_ids": target, "target_weights": np.ones(target.shape)}
        loss = trained.loss_sums(batch, training=False)[0]["text_to_text"]
        assert found.log_likelihood == pytest.approx(-float(loss), rel=1e-5)
    given = "a decoder with a prefix" if trained.backbone.prefix else "trained to answer sources"
    with pytest.raises(ConfigError, match=f"and t5_decoder is {given}; score targets after their sources"):
        scorer.perplexity(["a good film"])


def test_prompts_without_a_known_training_have_the_frame_of_their_layout(tokenizer):
    gpt, prefix = PromptTokenizer(gpt2(), tokenizer), PromptTokenizer(t5_decoder(prefix=True), tokenizer)
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    assert gpt.ids("a film") == [cls, *tokenizer.encode("a film")] and not gpt.frame.is_source
    assert prefix.ids("a film") == [cls, *tokenizer.encode("a film"), sep] and prefix.frame.end == sep
    # Language modelling by denoising: the source was empty, so that prompts are continued after its separator.
    lm = Denoising(gpt2(), denoising=DenoisingConfig(method="lm"))
    frame = lm.frame(tokenizer)
    assert PromptTokenizer(lm.backbone, tokenizer, frame).ids("a film") == [sep, *tokenizer.encode("a film")]
    assert frame.start == sep and Denoising.from_settings(gpt2(), lm.settings).frame(tokenizer) == frame
    assert CausalLM(gpt2()).frame(tokenizer) is None


@pytest.mark.parametrize("prefix", [False, True])
def test_fine_tuning_has_the_same_loss(prefix):
    """The task text_to_text makes its rows in another way: sources padded on the left, then targets."""
    model, batch = t5_decoder(prefix), features()
    loss = Denoising(model).loss_sums(batch, training=False)[0]["denoising"]
    fill = [4 - len(source) for source in SOURCES]
    names = ("token_ids", "padding_mask")
    left = {name: np.stack([np.roll(row, n) for row, n in zip(batch[name], fill)]) for name in names}
    task = TextToTextModel(model, GenerationConfig(max_new_tokens=4), Restrictions(stop_ids=(1,)), pad_id=0)
    assert float(task.loss_sums(batch | left, training=False)[0]["target"]) == pytest.approx(float(loss), rel=1e-5)


def test_parameters_and_the_logits_scale():
    model = t5_decoder()
    layer = 4 * 16 * 16 + 2 * 16 * 24 + 2 * 16
    assert model.count_params() == 37 * 16 + 32 * 2 + 2 * layer + 16
    x = np.ones((1, 1, 16), "float32")
    np.testing.assert_allclose(model.output_logits(x)[0, 0], ops.sum(model.embedding_table, axis=1) / 4, rtol=1e-5)


def test_a_prefix_needs_sources():
    config = {"model": {"family": "t5_decoder", "head_size": 8, **SIZES, "prefix": True}, "data": {"shards": "x"}}
    lm = {"name": "denoising", "denoising": {"method": "lm"}}
    for objective, message in (
        ({"name": "causal_lm"}, "causal_lm has no sources; set model.prefix=false, or objective.name=denoising"),
        (lm, "denoising.method=lm has no sources; set model.prefix=false"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_pretraining(build(PretrainConfig, config | {"objective": objective}))
    assert CausalLM(t5_decoder()).settings == CausalLMConfig()
