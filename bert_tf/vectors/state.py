"""What an interrupted training resumes from: the tables, and how far it is. One file, written whole or not at all."""

import json

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bert_tf.errors import DataError
from bert_tf.files import atomic_write, explain_disk_errors, is_there

STATE = "state.safetensors"


def save_state(folder, tables, **progress):
    """Writes tables, a dict of arrays, and what JSON can hold.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    with explain_disk_errors(folder), atomic_write(folder / STATE, "wb") as file:
        file.write(save(tables, {"progress": json.dumps(progress)}))


def load_state(folder):
    """(tables, progress) of the last `save_state`; None where there was none.

    Raises:
        DataError: the file is damaged.
    """
    path = folder / STATE
    if not is_there(path):
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["progress"])
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is damaged ({error}); delete {folder} to train from the beginning") from None
