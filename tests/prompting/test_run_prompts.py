"""Answers of small models: scores against sums made in NumPy from logits, and a model that knows the answers."""

import dataclasses
import json

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import PromptTokenizer, TextScorer
from bert_tf.models import T5, GPT2Config, GPT2Decoder, T5Config
from bert_tf.objectives import CausalLM
from bert_tf.prompting import PromptingConfig, run_prompts
from bert_tf.tokenizers import Frame, WordPieceTokenizer
from bert_tf.tokenizers.layout import build_layout

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] red green blue one two three is colour number . a ##b".split()
ROWS = [{"word": w, "label": "number" if w in ("one", "two", "three") else "colour"} for w in WORDS[5:11]]
OPTIONS = {"colour": " colour", "number": " number . ."}


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = WordPieceTokenizer(WORDS)
    tokenizer.layout = build_layout("none", None, None)
    return tokenizer


@pytest.fixture(scope="module")
def gpt():
    keras.utils.set_random_seed(2)
    sizes = {"hidden_size": 24, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 64}
    return GPT2Decoder(GPT2Config(len(WORDS), **sizes, initializer_range=0.5))


def log_likelihood(model, tokenizer, prompt, option):
    ids, begin = tokenizer.encode(prompt + option), len(tokenizer.encode(prompt))
    x = model({"token_ids": np.array([ids])})["sequence_output"]
    logits = np.asarray(model.output_logits(x), "float64")[0]
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return sum(log_p[i - 1, ids[i]] for i in range(begin, len(ids)))


@pytest.mark.parametrize("scoring", ["sum", "mean", "bytes", "unconditional"])
def test_scores_are_those_of_the_logits(gpt, tokenizer, scoring):
    settings = {"shots": 2, "scoring": scoring, "unconditional": "a is", "separator": " . "}
    config = PromptingConfig(context="{word} is", options=OPTIONS, test=ROWS, **settings)
    result = run_prompts(gpt, tokenizer, config)
    for row, answer in zip(ROWS, result.answers, strict=True):
        expected = {}
        for label, option in OPTIONS.items():
            value = log_likelihood(gpt, tokenizer, answer["prompt"], option)
            expected[label] = {
                "sum": value,
                "mean": value / {"colour": 1, "number": 3}[label],
                "bytes": value / len(option),
                "unconditional": value - log_likelihood(gpt, tokenizer, "a is", option),
            }[scoring]
        assert answer["scores"] == pytest.approx(expected, rel=1e-3, abs=1e-3)
        assert answer["answer"] == max(expected, key=expected.get)
        assert answer["correct"] == (answer["answer"] == row["label"])
    right = sum(answer["correct"] for answer in result.answers)
    assert result.accuracy == right / 6 and (result.chance, result.majority, result.count) == (0.5, 0.5, 6)
    assert result.standard_error == pytest.approx(np.std([a["correct"] for a in result.answers], ddof=1) / 6**0.5)


def taught(tokenizer, answers):
    """A GPT-2 of one layer that has been given the right token after "is", by gradient descent on the prompts."""
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64, "max_positions": 32}
    model = GPT2Decoder(GPT2Config(len(WORDS), **sizes, dropout=0.0, attention_dropout=0.0, initializer_range=0.2))
    ids = np.array([tokenizer.encode(f"{word} is {answer} .") for word, answer in answers.items()])
    ids = np.concatenate([np.full((len(ids), 1), tokenizer.cls_id), ids], axis=1).astype("int32")
    objective = CausalLM(model)
    targets = np.pad(ids[:, 1:], [(0, 0), (0, 1)])
    features = {"token_ids": ids, "target_ids": targets, "target_weights": (targets > 0).astype("float32")}
    objective.compile(optimizer=keras.optimizers.Adam(0.01), jit_compile=False)
    objective.fit({k: np.tile(v, (100, 1)) for k, v in features.items()}, batch_size=len(ids), epochs=2, verbose=0)
    return model


@pytest.mark.slow
def test_a_model_that_knows_the_answers_has_them_all_right(tokenizer, tmp_path, capsys):
    answers = {row["word"]: row["label"] for row in ROWS}
    model = taught(tokenizer, answers)
    tokenizer.layout = build_layout("bert", tokenizer.cls_id, tokenizer.sep_id)  # a prompt begins with [CLS]
    rows = [{"word": word, "answer": answer} for word, answer in answers.items()]
    written = PromptingConfig(context="{word} is", answer=" {answer}", test=rows, stop=".", max_new_tokens=3)
    result = run_prompts(model, tokenizer, written)
    assert (result.accuracy, result.chance, result.majority) == (1.0, None, 0.5)
    assert [a["answer"] for a in result.answers] == list(answers.values())
    chosen = PromptingConfig(context="{word} is", options={"colour": " colour", "number": " number"}, test=ROWS)
    assert run_prompts(model, tokenizer, chosen).accuracy == 1.0

    bert_tf.save(CausalLM(model), tokenizer, tmp_path / "gpt", "hf")
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "words.yaml").write_text('context: "{word} is"\nanswer: " {answer}"\nstop: "."\nmax_new_tokens: 3\n')
    command = ["prompt", str(tmp_path / "gpt"), "--config", str(tmp_path / "words.yaml"), "--batch-size", "4"]
    command += ["--set", f"test={tmp_path / 'rows.jsonl'}"]
    assert main([*command, "--show", "1", "--output", str(tmp_path / "answers.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "red is\n  [answer 'colour', expected 'colour']" in shown
    assert "accuracy  1.0000  (standard error 0.0000, 6 prompts)" in shown and "majority  0.5000" in shown
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [line["correct"] for line in lines] == [True] * 6


def test_a_stop_that_the_tokenizer_cannot_write_is_refused(gpt, tokenizer):
    rows = [{"word": "red", "answer": "colour"}]
    config = PromptingConfig(context="{word} is", answer=" {answer}", test=rows, max_new_tokens=3)
    with pytest.raises(ConfigError, match=r"stop is '\\n', which the model's tokenizer cannot write.*such as '\.'"):
        run_prompts(gpt, tokenizer, config)
    for stop in (".", None):
        assert run_prompts(gpt, tokenizer, dataclasses.replace(config, stop=stop)).count == 1


def test_a_prompt_longer_than_the_model_was_trained_for_is_refused(gpt, tokenizer):
    rows = [{"word": "red", "answer": "colour"}]
    written = PromptingConfig(context="{word} is", answer=" {answer}", test=rows, stop=".", max_new_tokens=3)
    count = len(PromptTokenizer(gpt, tokenizer).ids("red is")) + 3
    assert run_prompts(gpt, tokenizer, written, longest=count).count == 1
    message = rf"its answer up to 3, and .* sequences of {count - 1}; lower shots or max_new_tokens"
    with pytest.raises(DataError, match=message):
        run_prompts(gpt, tokenizer, written, longest=count - 1)
    chosen = PromptingConfig(context="{word} is", options={"colour": " colour", "number": " number"}, test=ROWS)
    with pytest.raises(DataError, match=r"its answer up to 1, .* sequences of 2; lower shots$"):
        run_prompts(gpt, tokenizer, chosen, longest=2)


def test_an_encoder_decoder_reads_the_prompt(tokenizer):
    keras.utils.set_random_seed(3)
    model = T5(T5Config(len(WORDS), 16, num_layers=1, num_heads=2, head_size=8, intermediate_size=32))
    config = PromptingConfig(context="{word} is", options=OPTIONS, test=ROWS[:2], scoring="sum")
    frame = Frame.for_answers_in_shards(tokenizer)
    result = run_prompts(model, tokenizer, config, frame=frame)
    (expected,) = TextScorer(model, tokenizer, frame=frame).continuations([("red is", " colour")])
    assert expected.tokens == 2  # "colour" and the separator
    assert result.answers[0]["scores"]["colour"] == pytest.approx(expected.log_likelihood, rel=1e-4)
    # Answers end by themselves where the tokenizer cannot write the line end that `stop` is by default.
    rows = [{"word": word, "answer": "colour"} for word in ("red", "green")]
    config = PromptingConfig(context="{word} is", answer=" {answer}", test=rows, max_new_tokens=3)
    found = run_prompts(model, tokenizer, config, frame=frame)
    plain = run_prompts(model, tokenizer, dataclasses.replace(config, stop=None), frame=frame)
    assert config.stop == "\n" and found.answers == plain.answers and found.count == 2
