"""Errors that the user can fix; each message says what is wrong, where, and what to do.

The command line prints the message alone, without a traceback. A bug in the library is never a
`UserError`. What a report shows is beside a training: an error there is a warning.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self


class Advice(NamedTuple):
    """A setting or an argument that the user can change, as a part of an error's message: `key=value`, or the key alone.

    Example:
        raise ConfigError("there is no dev file; set ", Advice("data.dev", "FILE"))
    """

    key: str
    value: object = None

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


class UserError(Exception):
    """A problem of input, configuration or environment that the user can fix.

    Args:
        parts: str and `Advice`, which together are the message. The command line words an advice for its own flags.
    """

    def __str__(self) -> str:
        return self.worded(str)

    def worded(self, word: Callable[[Advice], str]) -> str:
        """The message, in which `word` says how an advice is followed."""
        return "".join(word(part) if isinstance(part, Advice) else str(part) for part in self.args)

    def within(self, section: str) -> Self:
        """The same error of settings that stand in a section of others."""
        nested = [
            Advice(f"{section}.{part.key}", part.value) if isinstance(part, Advice) else part for part in self.args
        ]
        return type(self)(f"{section}: ", *nested)


class ConfigError(UserError):
    """An unknown key, a value of the wrong type, or values that contradict each other."""


class DataError(UserError):
    """A corpus, shard, vocabulary or task file that cannot be used as it is."""


class NonFiniteError(UserError):
    """A loss or gradient became NaN or infinite."""


class WorkerLostError(UserError):
    """Another worker of the cluster ended or cannot be reached, so that this one cannot continue."""


class RunDirectoryError(UserError):
    """A run or output directory that is busy, belongs to another run, or cannot be written."""


class ReportWarning(UserWarning):
    """A report, or a part of one, could not be made; the training continues. The tests turn it into an error."""


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turns any exception of the block into a `ReportWarning` that names `what` and the reason.

    Example:
        with guarded("the report of run"):
            write_report("run")  # a bug in it is a warning
    """
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"{what} was not written ({reason}); the training is not affected", ReportWarning, stacklevel=3)
