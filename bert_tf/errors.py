"""Errors that the user can fix; each message says what is wrong, where, and what to do.

The command line prints the message alone, without a traceback. A bug in the library is never a
`UserError`. What a report shows is beside a training: an error there is a warning.
"""

import contextlib
import warnings
from collections.abc import Iterator


class UserError(Exception):
    """A problem of input, configuration or environment that the user can fix."""


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
