"""`bert-tf generate` on the small published-format GPT-2 of the fixtures."""

from pathlib import Path

from bert_tf.cli.main import main
from bert_tf.generation import GenerationConfig, TextGenerator
from bert_tf.training.loading import load_pretrained

GPT2 = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "gpt2"


def test_it_prints_what_the_generator_returns(capsys):
    objective, tokenizer = load_pretrained(GPT2)
    generate = TextGenerator(objective.backbone, tokenizer)
    (answer,) = generate(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "4"]) == 0
    assert capsys.readouterr().out == f"the{answer.text}\n"
    assert main(["generate", str(GPT2), "the", "a", "--max-new-tokens", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0].endswith(f"the{answer.text}") and lines[0].split()[0] == f"{answer.score:.3f}"


def test_mistakes_are_one_sentence(capsys):
    assert main(["generate", str(GPT2), "the", "--max-new-tokens", "5000"]) == 1
    error = capsys.readouterr()
    assert error.out == "" and "are more than the model's" in error.err
    assert main(["generate", str(GPT2), "the", "--set", "top_p=0.9"]) == 1
    assert "'top_p' applies only to method=sample" in capsys.readouterr().err
    bert = GPT2.parent / "bert"
    assert main(["generate", str(bert), "the"]) == 1
    assert "does not continue texts; give a decoder" in capsys.readouterr().err
