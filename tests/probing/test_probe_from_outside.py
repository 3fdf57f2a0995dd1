"""A probe from outside: defined in a few lines, registered, run by the command."""

import dataclasses
import json
from pathlib import Path

import pytest

from bert_tf.cli.main import main
from bert_tf.probing import PROBES, LikelihoodProbe, Question, register_probe

BERT = str(Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert")


@dataclasses.dataclass(frozen=True)
class LongerWins(LikelihoodProbe):
    """Is a text made more probable by a word in front of it?"""

    word: str = "the"

    name, title = "longer_wins", "a word in front"
    columns = ("longer", "random", "texts")
    note = "longer: the text with the word is the more probable one; {ties:.0f} ties"

    def read(self, path, most=None):
        return [
            Question(("all", f"{len(line.split())} words"), (f"{self.word} {line}", line))
            for line in Path(path).read_text().splitlines()[:most]
        ]

    def answer(self, question, scores):
        (longer, _), (shorter, _) = scores
        return {"longer": longer > shorter, "ties": longer == shorter}


@pytest.fixture(autouse=True)
def registered():
    register_probe(LongerWins)
    yield
    PROBES.remove("longer_wins")


def test_the_command_runs_it(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("law\nwar of people\nnot read\n")
    files = [BERT, str(tmp_path / "texts.txt"), "--output", str(tmp_path / "page.html")]
    assert main(["probe", "longer_wins", *files, "--most", "2", "--set", "word=a"]) == 0
    printed, found = capsys.readouterr().out, json.loads((tmp_path / "page.json").read_text())
    assert "a word in front" in printed and "0 ties" in printed
    texts = {name: row["texts"] for name, row in found["model"]["rows"].items()}
    assert texts == {"all": 2, "1 words": 1, "3 words": 1}
    # Each word more makes a text less probable: the log-likelihood is a sum of negative numbers.
    assert found["model"]["rows"]["all"]["longer"] == 0.0 and found["model"]["ties"]["all"] == 0.0
