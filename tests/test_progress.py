"""The progress line in a log file and in a cell of a notebook."""

import io
import re

from bert_tf.progress import Progress


class NotebookStream(io.StringIO):
    """What ipykernel has in place of stderr."""


NotebookStream.__module__ = "ipykernel.iostream"


def shown(stream, counts):
    progress = Progress("reading", 200, "MB", stream=stream)
    for done in counts:
        progress.last = -1e9  # as if time had passed
        progress.update(done)
    progress.finish("4 files")
    return stream.getvalue()


def test_lines_of_a_log():
    lines = shown(io.StringIO(), [50, 100]).splitlines()
    assert [re.match(r"reading  (\d+)/200 MB", line)[1] for line in lines] == ["50", "100", "100"]
    assert lines[-1].endswith("4 files")


def test_one_line_of_a_notebook_changes_in_place():
    text = shown(NotebookStream(), [50, 100, 200])
    assert text.count("\n") == 1 and text.endswith("\n")
    bars = [line.count("━") for line in text.split("\r")[1:]]
    assert bars == [8, 15, 30, 30]
    lengths = [len(line.rstrip("\n")) for line in text.split("\r")[1:]]
    assert all(later >= len(earlier.rstrip()) for later, earlier in zip(lengths[1:], text.split("\r")[1:]))
