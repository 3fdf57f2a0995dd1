"""Exports from a process whose Keras is not on TensorFlow: by another one, which is given the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bert_tf import errors


def export_elsewhere(run_directory, **arguments):
    """What `bert_tf.export.export_run` does, in a process of its own with Keras on TensorFlow, on the CPU.

    Args:
        run_directory, arguments: of `export_run`; values that JSON holds, and paths.

    Returns, raises:
        As `export_run`; RuntimeError for an error that is not the user's, with what the process wrote.

    Example:
        export_elsewhere("run", kind="embedding", precision="float32", sequence_length=16)
    """
    environment = (
        {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ | {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    )
    call = json.dumps({"run_directory": run_directory} | arguments, default=str)
    command = [sys.executable, "-m", "bert_tf.export.elsewhere"]
    done = subprocess.run(command, input=call, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the export in another process failed:\n{done.stderr}")
    *printed, last = done.stdout.splitlines()
    print(*printed, sep="\n", end="\n" * bool(printed))
    print(done.stderr, end="", file=sys.stderr)
    answer = json.loads(last)
    if "path" in answer:
        return Path(answer["path"])
    raise getattr(errors, answer["error"])(answer["message"])


def main():
    """The other process: reads the arguments from stdin as JSON, and prints the path or the error."""
    from bert_tf.export import export_run

    try:
        answer = {"path": str(export_run(**json.loads(sys.stdin.read())))}
    except errors.UserError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
