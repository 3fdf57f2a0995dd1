"""Loads trained models from run directories, with their heads and tokenizers."""

from bert_tf.errors import RunDirectoryError
from bert_tf.files import is_there
from bert_tf.models.families import build_config, build_encoder
from bert_tf.tasks import load_task
from bert_tf.tasks.task import TASK_FILE
from bert_tf.training.checkpoints import assign
from bert_tf.training.imported import load
from bert_tf.training.precision import precision as precision_scope
from bert_tf.training.run_directory import CONFIG, RunDirectory


def is_finetuned(path):
    """Whether a run directory holds a fine-tuned model.

    Raises:
        RunDirectoryError: no run.
    """
    return is_there(RunDirectory.open(path).path / TASK_FILE)


def load_pretrained(path, precision="float32"):
    """The objective and tokenizer of a pretraining run, at its newest whole checkpoint.

    Args:
        path: the run directory.
        precision: what the model computes in, whatever it was trained in.

    Returns:
        A pair (the objective, such as a `MaskedLM`; tokenizer).

    Raises:
        RunDirectoryError: no run, or no whole checkpoint in it.
        DataError: the checkpoint does not fit the model.
        ConfigError: an unknown precision.
    """
    with precision_scope(precision):
        loaded = load(RunDirectory.open(path).path, pretraining=True)
    return loaded.objective, loaded.tokenizer


def trained_length(path):
    """Tokens of the rows that a pretraining run was trained on; positions beyond are untrained."""
    run = RunDirectory.open(path)
    length = run.section("data").get("sequence_length")
    if not isinstance(length, int):
        raise RunDirectoryError(f"{run.path / CONFIG} has no data.sequence_length; restore the file from a copy")
    return length


def load_finetuned(path, precision="float32"):
    """The task, model and tokenizer of a fine-tuning run, at its best epoch; of several seeds, the best.

    Args:
        path: the run directory.
        precision: what the model computes in, whatever it was trained in.

    Returns:
        (`Task`, its model, tokenizer); `task.predict(model, texts)` answers.

    Raises:
        RunDirectoryError: no run of fine-tuning, or no whole checkpoint in it.
        DataError: the checkpoint does not fit the model.
        ConfigError: an unknown precision.
    """
    run = RunDirectory.open(path)
    tokenizer = run.tokenizer()
    task = load_task(run.path, tokenizer)
    with precision_scope(precision):
        model = task.model(build_encoder(build_config(run.section("model"))))
    run.checkpoints.read(lambda file: assign(model.variables, file))
    return task, model, tokenizer
