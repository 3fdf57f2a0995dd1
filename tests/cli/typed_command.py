"""A command as a user types it."""

import contextlib
import io
import shlex

from bert_tf.cli.main import main


def run(command, status=0):
    assert main(shlex.split(command)) == status


def output_of(command):
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        run(command)
    return output.getvalue()


def error_of(command):
    """What a command that is refused prints on stderr."""
    with contextlib.redirect_stderr(io.StringIO()) as error:
        run(command, status=1)
    return error.getvalue()
