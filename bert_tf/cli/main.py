"""The `bert-tf` command: one subcommand for each step, each a short wrapper of public functions."""

# PYTHON_ARGCOMPLETE_OK

import argparse
import functools
import importlib.util
import os
import sys
from typing import NamedTuple

import bert_tf
from bert_tf.cli.quick_imports import hide_optional_libraries
from bert_tf.cli.settings import flag_hint, spell
from bert_tf.errors import ConfigError, UserError, WorkerLostError
from bert_tf.files import is_address
from bert_tf.interrupts import Interrupted, raise_on_signals, report_unhandled_signals


class Command(NamedTuple):
    """What is known of a command before its module is imported.

    Attributes:
        summary: str, its line in the list of commands.
        writes_addresses: whether --output may be an address; others write to this machine.
        computes: whether it trains or reads much with TensorFlow. oneDNN makes that 1.2 to 1.4 times as fast on CPUs with
            AVX2, where TensorFlow leaves it off (docs/measured/speed.md).
        resumes: whether it resumes when it is run again after an interruption.
        trains: whether it trains on the backend of Keras that KERAS_BACKEND names; others compute on TensorFlow.
    """

    summary: str
    writes_addresses: bool = False
    computes: bool = False
    resumes: bool = False
    trains: bool = False


_TRAINING = {"writes_addresses": True, "computes": True, "resumes": True, "trains": True}
COMMANDS = {
    "quickstart": Command("run all steps on bundled data in a few minutes", computes=True, resumes=True),
    "vocab": Command("train a subword vocabulary on a corpus"),
    "shards": Command("write shards of training examples from a corpus", writes_addresses=True, resumes=True),
    "inspect": Command("print examples of shards, decoded, with what is masked and why"),
    "vectors": Command("train word vectors on a corpus: skip-gram, CBOW, GloVe", writes_addresses=True, resumes=True),
    "pretrain": Command("pretrain a model on shards", **_TRAINING),
    "finetune": Command("fine-tune a pretrained model on labelled data", **_TRAINING),
    "distill": Command("train a small model to imitate a large one, of a task or in pretraining", **_TRAINING),
    "benchmark": Command("fine-tune on GLUE or SuperGLUE, compare with published numbers, submit", **_TRAINING),
    "study": Command("pretrain and fine-tune several configurations and compare them in one table", **_TRAINING),
    "evaluate": Command("metrics of a fine-tuned model; perplexity of a corpus, probability of texts"),
    "predict": Command("answers of a fine-tuned model to sentences or a file; fill [MASK] with a pretrained one"),
    "generate": Command("continue prompts with a decoder, or answer them with an encoder-decoder"),
    "prompt": Command("zero-, one- and few-shot tasks, written as text for a pretrained model"),
    "probe": Command("what a model has learned: minimal pairs, layers, trees, attention, nearest words", computes=True),
    "convert": Command("convert published checkpoints to runs, runs to other formats; average checkpoints"),
    "export": Command("write a SavedModel for TensorFlow Serving, tokenizer included", writes_addresses=True),
    "report": Command("write report.html of a run or a study, or of several runs together"),
}

LOG_LEVELS = ("debug", "info", "warning", "error")


def main(arguments=None):
    """Runs the command line.

    Args:
        arguments: list of str; None for those of the process.

    Returns:
        The exit status: 0; 1 after a `UserError`; 130 after Ctrl-C; 141 where the reader of the
        output ended; 143 after SIGTERM.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = make_parser(only=arguments[0] if arguments and "_ARGCOMPLETE" not in os.environ else None)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could be typed next
        import argcomplete

        argcomplete.autocomplete(parser)
    options, unknown = parser.parse_known_args(arguments or ["--help"])
    many = next((name for name in ("files", "text", "corpus") if getattr(options, name, None) == []), None)
    if many and not any(word.startswith("-") for word in unknown):
        # Before Python 3.13 argparse looks for arguments of any number before the first flag alone.
        setattr(options, many, unknown)
        unknown = []
    if unknown:
        hint = flag_hint(options.parser, unknown[0]) if unknown[0].startswith("--") else ""
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    _set_log_level(options.log_level)
    hide_optional_libraries()
    command = COMMANDS[options.command]
    if command.computes and "tensorflow" not in sys.modules:  # once it is imported, it is too late
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    partial = "run the same command again to resume" if command.resumes else "no partial result was kept"
    try:
        with report_unhandled_signals(), raise_on_signals(f"interrupted; {partial}"):
            if not command.writes_addresses and is_address(getattr(options, "output", None)):
                raise ConfigError(f"--output is {options.output}; write to a path of this machine, and copy that")
            (_check_backend if command.trains else _compute_on_tensorflow)(options.command)
            return _module(options.command).run(options) or 0
    except UserError as error:
        message = error.worded(functools.partial(spell, options.parser))
        print(f"bert-tf {options.command}: {message}", file=sys.stderr)
        if isinstance(error, WorkerLostError) and os.environ.get("KERAS_BACKEND") == "jax":
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # JAX would wait for the lost worker for a minute, and then abort
        return 1
    except Interrupted as interrupted:
        print(f"\nbert-tf {options.command}: {interrupted.message}", file=sys.stderr)
        return interrupted.exit_status
    except BrokenPipeError:  # the reader of the output had enough: `bert-tf inspect shards | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its exit
        return 141


def make_parser(only=None):
    """The parser of the command line.

    Args:
        only: the command whose options are added; None for all commands. One command starts faster,
            because only its module is imported.
    """
    form = functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=30)
    about = "Pretrained language models, from raw text to a served model."
    completion = 'Completion in bash and zsh: eval "$(register-python-argcomplete bert-tf)"'
    epilog = f"'bert-tf COMMAND --help' explains each command.\n{completion}"
    parser = argparse.ArgumentParser(prog="bert-tf", description=about, formatter_class=form, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"bert-tf {bert_tf.__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for command, record in COMMANDS.items():
        module = _module(command) if only in (None, command) else None
        about = module.__doc__ if module else None
        options = commands.add_parser(command, help=record.summary, description=about, formatter_class=form)
        if module:
            module.add_arguments(options)
        options.set_defaults(parser=options)
        levels = {"choices": LOG_LEVELS, "default": "warning", "metavar": "LEVEL"}
        logged = f"what is logged on stderr: {', '.join(LOG_LEVELS)} (default %(default)s)"
        options.add_argument("--log-level", **levels, help=logged)
    return parser


def _set_log_level(name):
    """Sets the log level, and that of TensorFlow's C++ log unless the environment sets it."""
    from absl import logging

    logging.set_verbosity(name)
    # TensorFlow reports absent GPUs as errors: at "warning" its own log stays silent.
    level = {"debug": "0", "info": "0", "warning": "3", "error": "3"}[name]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)


def _compute_on_tensorflow(command):
    """Sets the backend of Keras, unless it is imported, as in a notebook."""
    if "keras" in sys.modules:
        return
    if (wanted := os.environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        training = ", ".join(name for name, record in COMMANDS.items() if record.trains)
        print(
            f"bert-tf {command} computes on TensorFlow; KERAS_BACKEND={wanted} is for the commands that train ({training})",
            file=sys.stderr,
        )
    os.environ["KERAS_BACKEND"] = "tensorflow"


def _check_backend(command):
    """Refuses a KERAS_BACKEND on which nothing is trained, before Keras is imported and looks for it."""
    wanted = os.environ.get("KERAS_BACKEND", "tensorflow")
    if wanted not in ("tensorflow", "jax"):
        raise ConfigError(f"KERAS_BACKEND is {wanted}; bert-tf {command} trains on tensorflow or jax")
    if wanted == "jax" and importlib.util.find_spec("jax") is None:
        raise ConfigError(
            "KERAS_BACKEND is jax, which is not installed: pip install 'bert_tf[jax]', or unset KERAS_BACKEND"
        )


def _module(command):
    return __import__(f"bert_tf.cli.{command.replace('-', '_')}", fromlist=["run"])


if __name__ == "__main__":
    sys.exit(main())
