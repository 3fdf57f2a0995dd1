"""A command as a user types it."""

import shlex

from bert_tf.cli.main import main


def run(command, status=0):
    assert main(shlex.split(command)) == status
