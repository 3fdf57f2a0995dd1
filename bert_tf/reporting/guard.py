"""A report never makes a training fail."""

import contextlib
import warnings


class ReportWarning(UserWarning):
    """A report, or a part of one, could not be made; the training goes on. The tests turn it into an error."""


@contextlib.contextmanager
def guarded(what):
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
