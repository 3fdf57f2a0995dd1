"""The folder `data/` of a run: text, shards or labelled data that were made for it. No TensorFlow is imported."""

import contextlib
import shutil
from pathlib import Path

from bert_tf.errors import RunDirectoryError
from bert_tf.files import LOCK, is_there, lock_directory
from bert_tf.files.locks import remove_unused
from bert_tf.training.run_records import CONFIG

DATA = "data"
#: The file by which such a folder is told from one of the user's.
MARK = ".made_for_this_run"


def is_made_for_run(folder):
    """Whether a folder is the `data/` of a run, and not one of the user's."""
    return Path(folder).name == DATA and is_there(Path(folder) / MARK)


def make_data_folder(output):
    """Makes the folder of the data of a run, or finds it again; a `Path`.

    Raises:
        RunDirectoryError: there is a folder of that name which is not of a run.
    """
    folder = Path(output) / DATA
    if is_there(folder) and not is_made_for_run(folder):
        raise RunDirectoryError(
            f"{folder} was not made for a run of this library, which would write there; choose another output directory"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def remove_data_folder(output):
    """Removes the folder of the data of a run, and `output` if it is empty then; a folder of the user's stays."""
    if is_made_for_run(Path(output) / DATA):
        shutil.rmtree(Path(output) / DATA)
        with contextlib.suppress(RunDirectoryError), lock_directory(output):  # another process may use it
            remove_unused(output)


def delete_run(output):
    """Deletes a run, so that another one can take its place.

    Raises:
        RunDirectoryError: the folder holds something and no run, or another process uses it.
    """
    folder = Path(output)
    if not is_there(folder):
        return
    with lock_directory(folder):
        paths = [path for path in folder.iterdir() if path.name != LOCK]
        strangers = sorted(path.name for path in paths if not is_made_for_run(path) and path.name[0] != ".")
        if strangers and not is_there(folder / CONFIG):
            raise RunDirectoryError(f"{folder} holds no run ({', '.join(strangers[:3])}), so it is not deleted")
        for path in paths:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
