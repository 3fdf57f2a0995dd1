"""Rows of the files of probes that are JSON lines."""

import zipfile
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.parsing import parse_json
from bert_tf.tasks.tables.files import decode_text, numbered_lines, read_text


def json_files(path, keys=()):
    """The rows of a file of JSON lines, or of all .jsonl files of a folder or a zip, by their names.

    Args:
        path: of the file, the folder or the zip.
        keys: those at which each row must have a text, of more than white space.

    Yields:
        (name without its ending, iterator of (row, "FILE, line 7")), which is to be read before the next.

    Raises:
        DataError: an unreadable file, a line that is not JSON, or a row without one of the texts.

    Example:
        Path("a.jsonl").write_text('{"text": "a film"}')
        [(name, list(rows)) for name, rows in json_files("a.jsonl", ["text"])]
    """
    for file, text in _texts(Path(path)):
        yield Path(file).stem, _rows(text, file, keys)


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


def _rows(text, file, keys):
    for number, line in numbered_lines(text):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        row = parse_json(line, where)
        for key in keys:
            if not isinstance(row, dict) or not isinstance(row.get(key), str) or not row[key].strip():
                raise DataError(f"{where}: there is no text '{key}'; each line needs {' and '.join(keys)}")
        yield row, where
