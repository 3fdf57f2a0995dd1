"""The `bert-tf` command: one subcommand a step, each a thin wrapper of a few lines of Python."""

import argparse
import os
import sys

from bert_tf.errors import UserError

COMMANDS = {
    "quickstart": "walk the whole road on bundled data in a few minutes",
    "vocab": "train a WordPiece vocabulary on a corpus",
    "tokenize": "keep a corpus as token ids, to pack it in several formats",
    "shards": "turn a corpus into shards of training examples",
    "inspect": "print examples of shards, decoded, with what is masked and why",
    "pretrain": "pretrain a model on shards",
    "fill-mask": "let a pretrained model fill [MASK] in sentences",
    "finetune": "fine-tune a pretrained model on labelled data",
    "evaluate": "measure a fine-tuned model on a labelled file",
    "predict": "apply a fine-tuned model to sentences or a file",
    "study": "compare pretrainings that differ in little, in one table",
    "convert": "read a published checkpoint, or write one for other libraries",
    "export": "write a SavedModel that TF Serving loads, tokenizer inside",
}


def main(arguments=None):
    """Runs the command line; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow reports absent GPUs as errors
    parser = argparse.ArgumentParser(
        prog="bert-tf",
        description="Pretrained language models, from raw text to a served model.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {n:<12} {d}" for n, d in COMMANDS.items())
        + "\n\n'bert-tf COMMAND --help' explains each.",
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of the commands below")
    if not arguments or arguments[0].startswith("-"):
        parser.parse_args(arguments or ["--help"])
        return 0
    command = parser.parse_args(arguments[:1]).command
    module = _module(command)
    options = argparse.ArgumentParser(
        prog=f"bert-tf {command}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(options)
    try:
        return module.run(options.parse_args(arguments[1:])) or 0
    except UserError as error:
        print(f"bert-tf {command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nbert-tf {command}: interrupted; the same command continues it", file=sys.stderr)
        return 130


def _module(command):
    # Only the command that runs is imported: `--help` should not wait for TensorFlow.
    return __import__(f"bert_tf.cli.{command.replace('-', '_')}", fromlist=["run"])


if __name__ == "__main__":
    sys.exit(main())
