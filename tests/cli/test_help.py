"""The help of every command: a screen with an example."""

import pytest
from typed_command import run

from bert_tf.cli.main import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as exit:
        run(f"{command} --help")
    assert exit.value.code == 0
    shown = capsys.readouterr().out
    assert f"bert-tf {command}" in shown and "example:" in shown
    assert len(shown.splitlines()) <= 45, "a screen"
