"""Rows of the files of probes that are JSON lines."""

import zipfile
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.tasks.rows.files import decode_text, json_table, read_text
from bert_tf.tasks.rows.table import read_each
from bert_tf.tasks.rows.values import filled_text


def json_files(path, keys=(), read=None):
    """The rows of a file of JSON lines, or of all .jsonl files of a folder or a zip, by their names.

    Args:
        path: of the file, the folder or the zip.
        keys: those at which each row must have a text, of more than white space.
        read: function(row, name) -> what is made of a row; raises `BadRow`. None: nothing.

    Yields:
        (name without its ending, list of rows or of what `read` returns).

    Raises:
        DataError: an unreadable file, a line that is not JSON, or a row without one of the texts; with file and line.

    Example:
        Path("a.jsonl").write_text('{"text": "a film"}')
        list(json_files("a.jsonl", ["text"]))  # [('a', [{'text': 'a film'}])]
    """

    for file, text in _texts(Path(path)):
        name = Path(file).stem

        def read_row(row, name=name):
            for key in keys:
                filled_text(row, key)
            return [read(row, name) if read else row]

        yield name, read_each(json_table(file, text), read_row).items


def _texts(path):
    if path.suffix != ".zip":
        # Files on a Mac have hidden ones beside them that are no text; BLiMP's zip, too: "__MACOSX/data/._adjunct_island.jsonl".
        for file in sorted(path.glob("[!.]*.jsonl")) if path.is_dir() else [path]:
            yield str(file), read_text(file)
        return
    try:
        with explain_reading(path), zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".jsonl") and not Path(name).name.startswith("."):
                    yield f"{path}: {name}", decode_text(archive.read(name), f"{path}: {name}")
    except zipfile.BadZipFile as error:
        raise DataError(f"cannot read {path}: {error}") from None
