"""Flags and `--set`."""

import argparse

import pytest
from typed_command import run

from bert_tf.cli import settings as command_settings
from bert_tf.cli.main import make_parser
from bert_tf.errors import Advice, DataError
from bert_tf.training.pretrain_config import PretrainConfig


@pytest.mark.parametrize(("command", "message"), [
    ("quickstart --epochs 0", "--epochs: 0 is too small; it must be at least 1"),
    ("prompt nowhere --show -1", "--show: -1 is too small; it must be at least 0"),
    ("probe cloze nowhere --most 1.5", "--most: '1.5' is not a whole number"),
])  # fmt: skip
def test_numbers_that_a_flag_cannot_be(command, message, capsys):
    with pytest.raises(SystemExit) as exit:
        run(command)
    assert exit.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["my runs #2/shards", "512", "1e5", "true", "a: b", "[x", '"quoted"', "größe"])
def test_what_a_flag_is_given_is_taken_as_it_is(folder):
    flags = {"set": ["train.steps=1e3"], "settings": {"data.shards": folder}}
    config = command_settings.load(PretrainConfig, argparse.Namespace(config="pretrain/bert_tiny", **flags))
    assert config.data.shards == folder
    assert config.train.steps == 1000, "--set reads YAML as ever"


@pytest.mark.parametrize(("command", "advice", "words"), [
    ("finetune --output x", Advice("data.dev", "FILE"), "--dev FILE"),
    ("finetune --output x", Advice("task.metric", "f1"), "--set task.metric=f1"),
    ("shards c --tokenizer t --output s", Advice("overwrite", True), "--overwrite"),
    ("vocab c --output t", Advice("errors", "replace"), "--replace-invalid"),
    ("vocab c --output t", Advice("limit_alphabet"), "--alphabet"),
    ("evaluate run file", Advice("data.columns.format", "tsv"), "--columns format=tsv"),
    ("evaluate run file", Advice("task.metric", "f1"), "task.metric=f1"),
])  # fmt: skip
def test_an_advice_is_worded_for_the_command(command, advice, words):
    parser = make_parser(only=command.split()[0]).parse_args(command.split()).parser
    error = DataError("there is none; give it with ", advice)
    assert error.worded(lambda advice: command_settings.spell(parser, advice)) == f"there is none; give it with {words}"
    assert "--" not in str(error) and error.within("task").args[2].key == f"task.{advice.key}"
