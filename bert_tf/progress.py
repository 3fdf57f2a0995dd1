"""A progress line for work that takes longer than seconds."""

import atexit
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

#: Characters of the bar in a notebook.
_WIDTH = 30


class Progress:
    """Shows `label 120/1,000 MB (12 %)  3.4 MB/s  ETA 0:42  loss 2.31`.

    On a terminal and in a cell of a notebook this is a line with a bar that changes in place; in a log file a line is added
    every half minute.

    Args:
        label: the name of the work.
        total: the size of the work, in `unit`; None where it is not known.
        unit: what is counted, e.g. "tokens" or "MB"; "" for a line that shows the time alone.
        done: the part that was done before, which the rate does not count.
        stream: where the line is written; None for stderr.
    """

    def __init__(
        self, label: str, total: float | None = None, unit: str = "", done: float = 0, stream: TextIO | None = None
    ) -> None:
        self.label, self.total, self.unit = label, total, unit
        self.stream = stream or sys.stderr
        self.start, self.first = time.monotonic(), done
        self.done, self.last = done, 0.0
        self.bar = _bar(label, total, self.stream) if self.stream.isatty() else None
        self.in_notebook = type(self.stream).__module__.startswith("ipykernel.")
        self.shown = ""  # in a notebook

    def update(self, done: float, note: str = "") -> None:
        """Sets how much is done; `note` is shown at the end of the line."""
        self.done = done
        now = time.monotonic()
        if now - self.last >= (1.0 if self.bar is not None or self.in_notebook else 30.0):
            self.last = now
            self._show(note)

    def restart(self, done: float) -> None:
        """Starts the clock of the rate again, so that the time before, such as that of compilation, does not count."""
        self.start, self.first = time.monotonic(), done

    def finish(self, note: str = "") -> None:
        self._show(note, last=True)
        if self.bar is not None:
            self.bar.stop()

    def rate(self) -> float:
        """Units per second since this object was made or restarted."""
        return (self.done - self.first) / max(time.monotonic() - self.start, 1e-9)

    def _show(self, note, last=False):
        text = "  ".join(self._numbers(last) + ([note] if note else []))
        if self.bar is None:
            self.stream.write(self._in_place(text, last) if self.in_notebook else f"{self.label}  {text}\n")
            self.stream.flush()
        else:
            self.bar.update(self.bar.task_ids[0], completed=self.done, text=text, refresh=True)

    def _in_place(self, text, last):
        """The line with its bar, over the one before it."""
        filled = round(_WIDTH * min(self.done / self.total, 1)) if self.total else 0
        bar = f"{'━' * filled}{'╌' * (_WIDTH - filled)}  " if self.total else ""
        line, before = f"{self.label}  {bar}{text}", len(self.shown)
        self.shown = line
        return f"\r{line.ljust(before)}" + ("\n" if last else "")

    def _numbers(self, last):
        if not self.unit:
            return [_clock(time.monotonic() - self.start)]
        rate, parts = self.rate(), [f"{_number(self.done)} {self.unit}"]
        if self.total:
            parts = [f"{_number(self.done)}/{_number(self.total)} {self.unit} ({100 * self.done / self.total:.0f} %)"]
        if rate > 0:
            parts.append(f"{_number(rate)} {self.unit}/s")
            if last:
                parts.append(f"in {_clock(time.monotonic() - self.start)}")
            elif self.total:
                parts.append(f"ETA {_clock((self.total - self.done) / rate)}")
        return parts


def reporter(label: str, unit: str) -> Callable[[float, float], None]:
    """Function(done, total) that shows a `Progress` line; none where the first call says that all is done."""
    line: Progress | None = None

    def show(done: float, total: float) -> None:
        nonlocal line
        if line is None and done < total:
            line = Progress(label, total, unit, done)
        if line is not None:
            line.update(done)
            if done >= total:
                line.finish()

    return show


def _bar(label, total, stream):
    from rich import console, progress

    words = [progress.TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[text]}")]
    # No thread of its own: writers of shards fork.
    quiet: dict[str, Any] = {"auto_refresh": False, "redirect_stdout": False, "redirect_stderr": False}
    bar = progress.Progress(words[0], progress.BarColumn(), words[1], console=console.Console(file=stream), **quiet)
    bar.add_task(label, total=total, text="")
    bar.start()
    atexit.register(bar.stop)  # shows the cursor again after an error
    return bar


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _clock(seconds):
    minutes, seconds = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
