"""The average of a run's last checkpoints."""

import numpy as np
from safetensors import SafetensorError, safe_open

from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.training.checkpoints import MODEL
from bert_tf.training.converting import write_run
from bert_tf.training.run_directory import RunDirectory


def average_checkpoints(run, output, last=5):
    """Writes a run directory whose weights are the mean of a pretraining run's last checkpoints.

    Vaswani et al. 2017, section 6.1: the last 5 of the base model, written every 10 minutes, the last 20 of the big
    one; `avg_checkpoints.py` in tensor2tensor. The run must keep as many: `train.keep_checkpoints`. The result can be
    fine-tuned, exported, converted, and used to generate, as the run itself; it has no state of an optimizer, and is
    not resumed.

    Args:
        run: the directory of a pretraining run of any family.
        output: a folder that does not exist yet, or is empty.
        last: how many checkpoints, counted from the newest.

    Returns:
        The steps of the checkpoints, oldest first.

    Raises:
        ConfigError: `last` is below 2, or the run is one of fine-tuning.
        RunDirectoryError: no run, too few checkpoints, a damaged one; or `output` holds something.

    Example:
        average_checkpoints("run", "averaged", last=2)
    """
    if last < 2:
        raise ConfigError(f"an average needs at least 2 checkpoints, got last={last}")
    source = RunDirectory.open(run)
    record = source.config()
    if "task" in record:
        raise ConfigError(f"{run} is a run of fine-tuning, which keeps its best epoch alone; average a pretraining run")
    checkpoints = source.checkpoints.newest(last)
    steps = [state["step"] for _, state in checkpoints]
    if len(steps) < last:
        raise RunDirectoryError(
            f"{run} holds {len(steps)} undamaged checkpoints (steps {', '.join(map(str, steps)) or 'none'}), fewer than the "
            f"{last} to average; average fewer, or train with train.keep_checkpoints={last}"
        )
    # Without the settings of its training the result cannot be mistaken for a run to resume.
    record = {name: section for name, section in record.items() if name not in ("optimizer", "train")}
    record["averaged"] = {"run": str(run), "steps": steps}
    write_run(output, record, source.tokenizer(), _mean([folder / MODEL for folder, _ in checkpoints]), steps[-1])
    return steps


def _mean(files):
    """Name -> the mean of the tensors of that name, added in float64; whole numbers are those of the last file."""
    means = {}
    try:
        handles = [safe_open(file, framework="numpy") for file in files]
        for name in handles[-1].keys():
            tensor = handles[-1].get_tensor(name)
            if tensor.dtype.kind == "f":
                total = sum(handle.get_tensor(name).astype(np.float64) for handle in handles)
                tensor = (total / len(handles)).astype(tensor.dtype)
            means[name] = tensor
    except (OSError, SafetensorError) as error:
        raise RunDirectoryError(
            f"cannot read the checkpoints in {files[0].parent.parent}: {error}. If the run is training, it has removed one "
            "meanwhile; run the command again"
        ) from None
    return means
