"""`bert-tf generate` on the small published-format GPT-2 of the fixtures, and on a T5."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.cli.main import main
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from bert_tf.models import describe
from bert_tf.models.t5 import T5, T5Config
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import Frame, train_unigram
from bert_tf.training import loading
from bert_tf.training.converting import write_run

GPT2 = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "gpt2"


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    """Each checkpoint is loaded once: most of a command's time is the graph of its tokenizer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load_pretrained", functools.cache(loading.load_pretrained))
        yield


def test_it_prints_what_the_generator_returns(capsys):
    objective, tokenizer = loading.load_pretrained(str(GPT2))
    generate = TextGenerator(objective.backbone, tokenizer)
    (answer,) = generate(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "4"]) == 0
    assert capsys.readouterr().out == f"the{answer.text}\n"
    assert main(["generate", str(GPT2), "the", "a", "--max-new-tokens", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0].endswith(f"the{answer.text}") and lines[0].split()[0] == f"{answer.score:.3f}"


def test_another_method_than_that_of_the_run(capsys, monkeypatch):
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "4"]) == 0
    greedy = capsys.readouterr().out
    stored = GenerationConfig("beam_search", beams=3, n_best=2)
    monkeypatch.setattr("bert_tf.cli.generate.run_settings", lambda run: stored)
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "4", "--set", "method=greedy"]) == 0
    assert capsys.readouterr().out == greedy


def test_mistakes_are_one_sentence(capsys):
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "5000"]) == 1
    error = capsys.readouterr()
    assert error.out == "" and "are more than the model's" in error.err
    assert main(["generate", str(GPT2), "the", "--set", "top_p=0.9"]) == 1
    assert "'top_p' applies only to method=sample" in capsys.readouterr().err
    for prompt, message in (("", "has no token; give at least one word"), ("\udcff", "not a character of Unicode")):
        for command in (["generate", str(GPT2), prompt], ["generate", str(GPT2), "the", prompt]):
            assert main([*command, "--max-new-tokens", "4"]) == 1
            error = capsys.readouterr()
            assert error.out == "" and message in error.err
    bert = GPT2.parent / "bert"
    assert main(["generate", str(bert), "the"]) == 1
    assert "does not continue texts; give a decoder" in capsys.readouterr().err


def test_an_encoder_decoder_prints_what_it_writes(tmp_path, capsys):
    tokenizer = train_unigram(["the state of the union is strong"] * 20, 30, family="t5")
    sizes = {"num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 32}
    model = T5(T5Config(tokenizer.vocabulary_size + 8, 16, **sizes))
    bert_tf.save(Denoising(model), tokenizer, tmp_path / "t5", "hf")
    (answer,) = TextGenerator(model, tokenizer)(["the union"], GenerationConfig(max_new_tokens=4))[0]
    assert main(["generate", str(tmp_path / "t5"), "the union", "--max-new-tokens", "4"]) == 0
    assert capsys.readouterr().out == f"{answer.text}\n"
    assert main(["generate", str(tmp_path / "t5"), "the union", "state", "--max-new-tokens", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{answer.score:9.3f}  {answer.text}"


def test_the_default_stays_within_the_trained_length(tmp_path, capsys):
    objective, tokenizer = loading.load_pretrained(str(GPT2))
    model, run = objective.backbone, str(tmp_path / "run")
    record = {"model": describe(model.config), "objective": {"name": "causal_lm"}, "data": {"sequence_length": 6}}
    write_run(tmp_path / "run", record, tokenizer, {v.path: np.ascontiguousarray(v) for v in model.weights}, 1)
    generate, prompts = TextGenerator(model, tokenizer), ["the", "the a"]
    longest = max(len(generate.prompts.ids(text)) for text in prompts)
    for given, tokens in (([], 6 - longest), (["--max-new-tokens", "8"], 8), (["--set", "max_new_tokens=8"], 8)):
        expected = [answer.text for (answer,) in generate(prompts, GenerationConfig(max_new_tokens=tokens))]
        assert main(["generate", run, *prompts, *given]) == 0
        lines = capsys.readouterr().out
        assert all(f"{prompt}{text}\n" in lines for prompt, text in zip(prompts, expected))
    assert main(["generate", run, "the a the a the a"]) == 1
    assert "was trained on sequences of 6; shorten it, or set --max-new-tokens" in capsys.readouterr().err

    (tmp_path / "corpus.txt").write_text("the a the b " * 5)
    scorer = TextScorer(model, tokenizer)
    for given, length in (([], 6), (["--length", "10"], 10)):
        assert main(["score", run, "--corpus", str(tmp_path / "corpus.txt"), "--json", *given]) == 0
        nll = json.loads(capsys.readouterr().out)["nll"]
        assert nll == pytest.approx(scorer.perplexity([("the a the b " * 5).strip()], length).nll, rel=1e-4)


def test_the_length_of_a_fine_tuned_run_is_that_of_its_task(tmp_path):
    objective, tokenizer = loading.load_pretrained(str(GPT2))
    model = objective.backbone
    record = {
        "model": describe(model.config),
        "task": {"kind": "classification", "sequence_length": 9},
        "data": {"train": "a.tsv"},
    }
    write_run(tmp_path / "run", record, tokenizer, {v.path: np.ascontiguousarray(v) for v in model.weights}, 1)
    (tmp_path / "run" / "task.json").write_text("{}")
    assert loading.trained_length(tmp_path / "run") == 9


def test_a_decoder_trained_on_pairs_answers_its_prompt(tmp_path, capsys):
    objective, tokenizer = loading.load_pretrained(str(GPT2))
    model = objective.backbone
    record = {"model": describe(model.config), "objective": {"name": "text_to_text"}}
    write_run(tmp_path / "run", record, tokenizer, {v.path: np.ascontiguousarray(v) for v in model.weights}, 1)
    frame = Frame.answering_as_in_shards(tokenizer)
    generate, scorer = TextGenerator(model, tokenizer, frame=frame), TextScorer(model, tokenizer, frame=frame)
    assert generate.prompts.ids("the")[-1] == tokenizer.sep_id
    (answer,) = generate(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert main(["generate", str(tmp_path / "run"), "the", "--max-new-tokens", "4"]) == 0
    assert capsys.readouterr().out == f"{answer.text}\n"  # without the prompt
    (score,) = scorer.continuations([("the", "a the")])
    assert main(["score", str(tmp_path / "run"), "the", "a the"]) == 0
    assert float(capsys.readouterr().out.splitlines()[1].split("\t")[0]) == pytest.approx(
        score.log_likelihood, abs=1e-5
    )
    assert main(["score", str(tmp_path / "run"), "--corpus", __file__]) == 1
    assert "gpt2 is trained to answer sources; score targets after their sources" in capsys.readouterr().err
