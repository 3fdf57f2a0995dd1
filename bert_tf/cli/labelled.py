"""Arguments of `evaluate`, `predict` and `augment`: the batch size, and how the file is read where it differs from training."""

from bert_tf.cli.settings import at_least
from bert_tf.config import apply_overrides


def add_arguments(parser):
    parser.add_argument(
        "--batch-size", type=at_least(1), metavar="N", default=32, help="examples of a batch (default %(default)s)"
    )
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="ROLE=COLUMN",
        help="how this file is read where that differs from the training file: a setting of data.columns, e.g. --columns "
        "text=document or --columns format=csv; may be repeated",
    )


def columns(arguments):
    """The settings of `--columns`, a dict."""
    # Messages name the settings of a fine-tuning, and may be pasted.
    return apply_overrides({}, [item.removeprefix("data.columns.") for item in arguments.columns])
