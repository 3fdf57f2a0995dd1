"""`bert-tf generate` on the small published-format GPT-2 of the fixtures, and on a T5."""

import json
from pathlib import Path

import numpy as np
import pytest
from opened import objective_and_tokenizer
from typed_command import error_of, output_of, run

import bert_tf
from bert_tf.cli.main import main
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from bert_tf.models import T5, T5Config, describe
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import Frame, train_unigram
from bert_tf.training.converting import write_run

pytestmark = pytest.mark.usefixtures("loaded_once")
GPT2 = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "gpt2"


def test_it_prints_what_the_generator_returns():
    objective, tokenizer = objective_and_tokenizer(str(GPT2))
    generate = TextGenerator(objective.backbone, tokenizer)
    (answer,) = generate(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert output_of(f"generate {GPT2} the --max-new-tokens 4") == f"the{answer.text}\n"
    lines = output_of(f"generate {GPT2} the a --max-new-tokens 4").splitlines()
    assert len(lines) == 2 and lines[0].endswith(f"the{answer.text}") and lines[0].split()[0] == f"{answer.score:.3f}"


def test_another_method_than_that_of_the_run(monkeypatch):
    greedy = output_of(f"generate {GPT2} the --max-new-tokens 4")
    stored = GenerationConfig("beam_search", beams=3, n_best=2)
    monkeypatch.setattr(bert_tf.load(str(GPT2)).generator, "config", stored)
    assert output_of(f"generate {GPT2} the --max-new-tokens 4 --set method=greedy") == greedy


def test_mistakes_are_one_sentence(capsys):
    run(f"generate {GPT2} the --max-new-tokens 5000", status=1)
    error = capsys.readouterr()
    assert error.out == "" and "are more than the model's" in error.err
    for model, prompt, message in (
        (GPT2.parent / "gpt1", "", "has no token; give at least one word"),
        (GPT2, "\udcff", "not a character of Unicode"),
    ):
        for command in (["generate", str(model), prompt], ["generate", str(model), "the", prompt]):
            assert main([*command, "--max-new-tokens", "4"]) == 1
            error = capsys.readouterr()
            assert error.out == "" and message in error.err


def test_an_encoder_decoder_prints_what_it_writes(tmp_path):
    tokenizer = train_unigram(["the state of the union is strong"] * 20, 30, family="t5")
    sizes = {"num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 32}
    model = T5(T5Config(tokenizer.vocabulary_size + 8, 16, **sizes))
    bert_tf.save(Denoising(model), tokenizer, tmp_path / "t5", "hf")
    (answer,) = TextGenerator(model, tokenizer)(["the union"], GenerationConfig(max_new_tokens=4))[0]
    assert output_of(f"generate {tmp_path}/t5 'the union' --max-new-tokens 4") == f"{answer.text}\n"
    of_two = output_of(f"generate {tmp_path}/t5 'the union' state --max-new-tokens 4")
    assert of_two.splitlines()[0] == f"{answer.score:9.3f}  {answer.text}"


def write_gpt2(path, **record):
    """A run of that model with this record; returns (model, tokenizer)."""
    objective, tokenizer = objective_and_tokenizer(str(GPT2))
    model = objective.backbone
    tensors = {v.path: np.ascontiguousarray(v) for v in model.weights}
    write_run(path, {"model": describe(model.config)} | record, tokenizer, tensors, 1)
    return model, tokenizer


def test_the_default_stays_within_the_trained_length(tmp_path):
    path = tmp_path / "run"
    model, tokenizer = write_gpt2(path, objective={"name": "causal_lm"}, data={"sequence_length": 6})
    generate, prompts = TextGenerator(model, tokenizer), ["the", "the a"]
    longest = max(len(generate.prompts.ids(text)) for text in prompts)
    for given, tokens in (("", 6 - longest), ("--set max_new_tokens=8", 8)):
        expected = [answer.text for (answer,) in generate(prompts, GenerationConfig(max_new_tokens=tokens))]
        lines = output_of(f"generate {path} the 'the a' {given}")
        assert all(f"{prompt}{text}\n" in lines for prompt, text in zip(prompts, expected))
    refused = error_of(f"generate {path} 'the a the a the a'")
    assert "was trained on sequences of 6; shorten it, or set max_new_tokens" in refused

    (tmp_path / "corpus.txt").write_text("the a the b " * 5)
    scorer = TextScorer(model, tokenizer)
    nll = json.loads(output_of(f"evaluate {path} {tmp_path}/corpus.txt --json"))["nll"]
    assert nll == pytest.approx(scorer.perplexity([("the a the b " * 5).strip()], 6).nll, rel=1e-4)


def test_the_length_of_a_fine_tuned_run_is_that_of_its_task(tmp_path):
    task = {"kind": "classification", "sequence_length": 9}
    write_gpt2(tmp_path / "run", task=task, data={"train": "a.tsv"})
    (tmp_path / "run" / "task.json").write_text("{}")
    assert bert_tf.load(tmp_path / "run").sequence_length == 9


def test_a_decoder_trained_on_pairs_answers_its_prompt(tmp_path):
    path = tmp_path / "run"
    model, tokenizer = write_gpt2(path, objective={"name": "text_to_text"})
    frame = Frame.for_answers_in_shards(tokenizer)
    generate, scorer = TextGenerator(model, tokenizer, frame=frame), TextScorer(model, tokenizer, frame=frame)
    assert generate.prompts.ids("the")[-1] == tokenizer.sep_id
    (answer,) = generate(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert output_of(f"generate {path} the --max-new-tokens 4") == f"{answer.text}\n"  # without the prompt
    (score,) = scorer.continuations([("the", "a the")])
    (tmp_path / "corpus.txt").write_text("the a")
    found = json.loads(output_of(f"evaluate {path} --continuation the 'a the'"))["log_likelihood"]
    assert found == pytest.approx(score.log_likelihood, abs=1e-5)
    refused = error_of(f"evaluate {path} {tmp_path}/corpus.txt")
    assert "gpt2 is trained to answer sources; score targets after their sources" in refused
