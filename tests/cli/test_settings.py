"""Flags and `--set`."""

import argparse

import pytest
from typed_command import run

from bert_tf.cli import settings as command_settings
from bert_tf.training.pretrain_config import PretrainConfig


@pytest.mark.parametrize(("command", "message"), [
    ("quickstart --pretrain-steps 0", "--pretrain-steps: 0 is too small; it must be at least 1"),
    ("predict nowhere text --batch-size 0", "--batch-size: 0 is too small; it must be at least 1"),
    ("prompt nowhere --show -1", "--show: -1 is too small; it must be at least 0"),
    ("probe cloze nowhere --most 1.5", "--most: '1.5' is not a whole number"),
])  # fmt: skip
def test_numbers_that_a_flag_cannot_be(command, message, capsys):
    with pytest.raises(SystemExit) as exit:
        run(command)
    assert exit.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["my runs #2/shards", "512", "1e5", "true", "a: b", "[x", '"quoted"', "größe"])
def test_what_a_flag_is_given_is_taken_as_it_is(folder):
    arguments = argparse.Namespace(config="pretrain/bert_tiny", set=["train.steps=1e3"])
    config = command_settings.load(PretrainConfig, arguments, data__shards=folder)
    assert config.data.shards == folder
    assert config.train.steps == 1000, "--set reads YAML as ever"
