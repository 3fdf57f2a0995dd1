"""`bert_tf.pretrain`: what is chosen for a text, and one minute from the text to an opened model."""

import json
from pathlib import Path

import pytest

import bert_tf
from bert_tf import samples
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.tokenizers import load_tokenizer

FIXTURES = Path(__file__).parent / "fixtures" / "checkpoints"


def speeches(count):
    lines = Path(samples.STATE_OF_THE_UNION).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines[:count]]


@pytest.fixture
def short(monkeypatch):
    """Of the minutes that are given a tenth is trained: half a minute of five, however busy the machine is at the trial."""
    monkeypatch.setattr("bert_tf.training.budget.MARGIN", 0.1)


@pytest.mark.slow
def test_from_texts_to_a_model(tmp_path, capfd, short):
    model = bert_tf.pretrain(speeches(8), minutes=5, output=tmp_path / "run")
    assert len(model.fill_mask("The [MASK] of the United States.")[0]) == 5
    assert model.results["eval_masked_lm_loss"] < 7.5, "of 4,096 equal guesses it is 8.3"
    command = "bert-tf pretrain --config laptop/best --shards shards --output run --set train.steps="
    assert f"{command}{model.results['step']}" in capfd.readouterr().err
    again = bert_tf.pretrain(speeches(8), minutes=5, output=tmp_path / "run")
    assert again.results == model.results
    different = {"minutes is 5.0, this one's 2.0": {"minutes": 2}, "seed": {"seed": 3}, "text": {"text": speeches(7)}}
    for what, changes in different.items():
        arguments = {"text": speeches(8), "minutes": 5, "output": tmp_path / "run"} | changes
        with pytest.raises(RunDirectoryError, match=f"holds another run: its {what}"):
            bert_tf.pretrain(**arguments)


@pytest.mark.slow
def test_a_given_model_is_trained_on(tmp_path, capsys, short):
    model = bert_tf.pretrain(speeches(8), minutes=5, output=tmp_path / "run", init_from=FIXTURES / "gpt2")
    assert model.family == "gpt2" and model.tokenizer.vocabulary == load_tokenizer(FIXTURES / "gpt2").vocabulary
    assert model.generate("The state", max_new_tokens=4) is not None
    assert f"bert-tf pretrain --config {tmp_path}/run/config.yaml --shards shards" in capsys.readouterr().err


def test_the_vocabulary_fits_the_script():
    from bert_tf.training.budget import choose_vocabulary

    spaced = ["The state of the Union is strong, 나라.", "Это текст на русском языке."]
    others = ["나라의 말이 중국과 달라서 문자와 서로 통하지 아니하므로"]
    others += ["我々は平和を維持し、専制と隷従を除去する", "人人生而自由"]
    assert [choose_vocabulary([text])[0] for text in spaced] == ["wordpiece"] * 2
    assert [choose_vocabulary([text])[0] for text in others] == ["unigram"] * 3


def test_what_is_wrong_is_said_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("a")
    (tmp_path / "other" / "data").mkdir(parents=True)
    (tmp_path / "other" / "data" / "train.jsonl").write_text("mine")
    mine, other, over = {"output": tmp_path / "mine"}, {"output": tmp_path / "other"}, {"overwrite": True}
    for changes, error, message in (
        ({"minutes": 0}, ConfigError, "minutes is 0; it must be above 0"),
        ({"text": ["short"]}, DataError, "the text is too short: at least 82 kB are needed"),
        ({"text": [3]}, DataError, "text 0 is 3; it must be a str"),
        ({"text": 3}, DataError, "the text is 3; give a file, folder or glob, or a list"),
        ({"text": str(tmp_path / "none")}, DataError, "none"),
        (mine, RunDirectoryError, "mine is not empty and holds no run of this call .notes.txt."),
        (mine | over, RunDirectoryError, "holds no run .notes.txt., so it is not deleted"),
        (other, RunDirectoryError, "other is not empty and holds no run of this call .data."),
        (other | over, RunDirectoryError, "holds no run .data., so it is not deleted"),
        ({"init_from": FIXTURES / "xlnet"}, ConfigError, "minutes is for masked_lm and causal_lm"),
    ):
        arguments = {"text": speeches(8), "minutes": 1, "output": tmp_path / "run"} | changes
        with pytest.raises(error, match=message):
            bert_tf.pretrain(**arguments)
        assert not (tmp_path / "run" / "data").exists() and (tmp_path / "mine" / "notes.txt").exists()
        assert (tmp_path / "other" / "data" / "train.jsonl").read_text() == "mine"
