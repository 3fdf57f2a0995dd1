"""Errors that the user can fix; each message says what is wrong, where, and what to do.

The command line prints the message alone, without a traceback. A bug in the library is never a
`UserError`.
"""


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
