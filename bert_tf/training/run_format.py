"""Runs as a format of `bert_tf.checkpoints`."""

from bert_tf.checkpoints.formats import Format
from bert_tf.files import is_there
from bert_tf.training.run_records import CONFIG


class RunFormat(Format):
    """A run directory; of several seeds, the best.

    Example:
        RunFormat().recognize(Path("run"))  # True
    """

    name, files = "run", f"{CONFIG} (a run)"

    def recognize(self, path):
        return is_there(path / CONFIG)

    def open(self, path, family):
        from bert_tf.training.run_source import open_run

        return open_run(path)
