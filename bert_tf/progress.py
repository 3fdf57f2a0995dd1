"""One progress line for anything that takes longer than seconds."""

import sys
import time


class Progress:
    """Prints `label 120/1,000 MB (12 %)  3.4 MB/s  ETA 0:42  loss 2.31`, at most once a second.

    On a terminal the line is rewritten in place; in a log file a line is added every half minute.

    Args:
        label: what is being done.
        total: how much there is, in `unit`; None where it is not known.
        unit: what is counted, e.g. "tokens" or "MB"; "" where nothing is, and the line shows the time alone.
        done: how much was already done before, which the rate must not count.
    """

    def __init__(self, label, total=None, unit="", done=0, stream=None):
        self.label, self.total, self.unit = label, total, unit
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.start, self.first = time.monotonic(), done
        self.done, self.last = done, 0.0

    def update(self, done, note=""):
        """Sets how much is done; `note` is shown at the end of the line."""
        self.done = done
        now = time.monotonic()
        if now - self.last >= (1.0 if self.live else 30.0):
            self.last = now
            self._print(note)

    def restart(self, done):
        """Starts the clock of the rate again: what came before, such as compilation, does not count."""
        self.start, self.first = time.monotonic(), done

    def finish(self, note=""):
        self._print(note, last=True)

    def rate(self):
        """Units per second since this object was made or restarted."""
        return (self.done - self.first) / max(time.monotonic() - self.start, 1e-9)

    def _print(self, note, last=False):
        rate = self.rate()
        parts = [self.label, _number(self.done)]
        if self.total:
            unit = f" {self.unit}" if self.unit else ""
            parts[1] += f"/{_number(self.total)}{unit} ({100 * self.done / self.total:.0f} %)"
        if not self.unit:
            parts[1:] = [_clock(time.monotonic() - self.start)]
        elif rate > 0:
            parts.append(f"{_number(rate)} {self.unit}/s")
            if last:
                parts.append(f"in {_clock(time.monotonic() - self.start)}")
            elif self.total:
                parts.append(f"ETA {_clock((self.total - self.done) / rate)}")
        text = "  ".join(parts + ([note] if note else []))
        if self.live:
            self.stream.write(f"\r\x1b[K{text}" + ("\n" if last else ""))
        else:
            self.stream.write(text + "\n")
        self.stream.flush()


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _clock(seconds):
    minutes, seconds = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
