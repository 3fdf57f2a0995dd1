import dataclasses
import errno
import json
import os

import pytest

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import lock_directory
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class Train:
    steps: int = 10
    log_every: int = 5


@dataclasses.dataclass(frozen=True)
class Config:
    train: Train = Train()


def test_the_same_run_is_continued_and_logging_may_change(tmp_path):
    RunDirectory.claim(tmp_path / "run", Config()).record(Config())
    again = Config(Train(log_every=1))
    RunDirectory.claim(tmp_path / "run", again).record(again)
    assert RunDirectory.open(tmp_path / "run").config() == {"train": {"steps": 10, "log_every": 1}}
    with pytest.raises(RunDirectoryError, match="holds another run: its train.steps is 10, this one's 20"):
        RunDirectory.claim(tmp_path / "run", Config(Train(steps=20)))


def test_opening_what_is_no_run(tmp_path):
    with pytest.raises(RunDirectoryError, match="is not a run directory: it has no config.yaml"):
        RunDirectory.open(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunDirectoryError, match="is not empty and holds no run \\(thesis.tex\\)"):
        RunDirectory.claim(tmp_path, Config())


def test_a_kill_while_the_tokenizer_is_written_leaves_no_half_of_it(tmp_path):
    class Killed(BaseException):
        pass

    class Tokenizer:
        fingerprint = "abc"

        def __init__(self, killed):
            self.killed = killed

        def save(self, folder):
            folder.mkdir(exist_ok=True)
            (folder / "vocab.txt").write_text("a")
            if self.killed:
                raise Killed
            (folder / "tokenizer_config.json").write_text("{}")

    run = RunDirectory(tmp_path)
    with pytest.raises(Killed):
        run.keep_tokenizer(Tokenizer(killed=True))
    run.keep_tokenizer(Tokenizer(killed=False))
    names = sorted(path.name for path in (tmp_path / "tokenizer").iterdir())
    assert names == ["checksums.json", "tokenizer_config.json", "vocab.txt"]


@pytest.fixture(scope="module")
def word_pieces():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])


@pytest.mark.parametrize("change", ["cut", "reordered", "emptied", "removed"])
def test_a_changed_tokenizer_is_refused_and_restored(tmp_path, word_pieces, caplog, change):
    run = RunDirectory(tmp_path)
    run.keep_tokenizer(word_pieces)
    assert run.tokenizer().fingerprint == word_pieces.fingerprint
    file = tmp_path / "tokenizer" / "vocab.txt"
    lines = file.read_text().splitlines(keepends=True)
    texts = {"cut": lines[:-2], "reordered": lines[:5] + lines[:4:-1], "emptied": [], "removed": []}
    file.write_text("".join(texts[change]))
    if change == "removed":
        file.unlink()
    with pytest.raises(RunDirectoryError, match="vocab.txt (was changed since it was saved|cannot be read).*restore"):
        run.tokenizer()
    run.keep_tokenizer(word_pieces)
    assert "vocab.txt" in caplog.messages[-1] and "written again" in caplog.messages[-1]
    assert file.read_text() == "".join(lines) and run.tokenizer().fingerprint == word_pieces.fingerprint


def test_of_several_seeds_the_best_is_opened_and_a_damaged_summary_is_a_sentence(tmp_path):
    RunDirectory.claim(tmp_path / "run", Config()).record(Config())
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"metric": "accuracy", "best": "seed-3", "seeds": []}))
    assert RunDirectory.open(tmp_path / "run").path == tmp_path / "run" / "seed-3"
    for text in ("", "[]", "null", '{"best": 3}', '{"metric": "f1", "best": "a", "seeds": 1}', "[" * 99999):
        (tmp_path / "run" / "summary.json").write_text(text)
        with pytest.raises(DataError, match="summary.json"):
            RunDirectory.open(tmp_path / "run")
    for best in ("../other", "/etc", "..", "a/b"):
        (tmp_path / "run" / "summary.json").write_text(json.dumps({"metric": "f1", "best": best, "seeds": []}))
        with pytest.raises(DataError, match="summary.json: best is .* must be the name of a file"):
            RunDirectory.open(tmp_path / "run")


def test_a_configuration_that_is_empty_or_cut(tmp_path):
    for text in ("", "model: {}\n"):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(RunDirectoryError, match="config.yaml is truncated: it has no section train"):
            RunDirectory.claim(tmp_path, Config())
    for text, said in (("", "has no model"), ("model: 5", "holds 5 as model")):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(RunDirectoryError, match=f"config.yaml {said}; restore the file"):
            RunDirectory.open(tmp_path).section("model")


def test_an_unreadable_run_is_not_an_empty_one(tmp_path, monkeypatch):
    def refuse(path, *arguments, **keywords):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(RunDirectoryError, match="cannot read .*: permission denied"):
        RunDirectory.claim(tmp_path, Config())
    monkeypatch.setattr(os, "stat", refuse)
    for look in (lambda: RunDirectory.claim(tmp_path, Config()), lambda: RunDirectory.open(tmp_path)):
        with pytest.raises(RunDirectoryError, match="cannot read .*config.yaml: permission denied"):
            look()


def test_a_run_that_was_moved_is_noticed(tmp_path):
    with lock_directory(tmp_path / "run") as in_place:
        run = RunDirectory.claim(tmp_path / "run", Config(), in_place)
        run.record(Config())
        run.check_in_place("step 3")
        (run.path / "config.yaml").unlink()
        with pytest.raises(RunDirectoryError, match="run was moved, deleted or emptied .* so step 3 cannot be saved"):
            run.check_in_place("step 3")
        run.record(Config())
        run.path.rename(tmp_path / "moved")
        run.path.mkdir()
        (run.path / "config.yaml").touch()
        with pytest.raises(RunDirectoryError, match="run was moved"):
            run.check_in_place("step 3")


def test_damaged_lines_of_metrics_are_left_out_and_lost_ones_counted(tmp_path, caplog):
    run = RunDirectory.claim(tmp_path, Config())
    good = [json.dumps({"step": step, "loss": 1.5}).encode() for step in (5, 10, 15)]
    damaged = [b'{"step": 7, "loss": }', b'{"loss": 1}', b"\x00" * 30, b"\xff}", b"[1]", b'{"step": true}', b"{" * 9999]
    damaged.append(b'{"st')
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join([good[0], *damaged, *good[1:]]))
    assert [m["step"] for m in run.metrics()] == [5, 10, 15]
    run.forget_metrics_after(10, lines=2)
    assert not caplog.messages and [m["step"] for m in run.metrics()] == [5, 10]  # step 15 will be done again
    (tmp_path / "metrics.jsonl").write_bytes(good[0] + b"\n" + b"\x00" * 40)
    run.forget_metrics_after(10, lines=2)
    assert "metrics.jsonl lost 1 of its 2 lines up to step 10" in caplog.messages[-1]
    assert (tmp_path / "metrics.jsonl").read_bytes() == good[0] + b"\n"
