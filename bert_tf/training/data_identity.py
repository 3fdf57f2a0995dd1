"""Checksums of the data that a run is trained on; they must be the same when the run is resumed.

Paths do not count: shards and files that were moved are the same data.
"""

import hashlib
import json
from pathlib import Path

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import atomic_write, is_address, is_there, list_files, sha256
from bert_tf.parsing import brief, read_json_object

RECORD = "inputs.json"


def of_shards(manifest):
    """The identity of a folder of shards: their settings and a checksum over the checksums of the files."""
    lines = "".join(f"{shard.sha256} {shard.file}\n" for shard in manifest.shards)
    numbers = {"sequence_length": manifest.sequence_length, "examples": manifest.examples}
    return manifest.settings | numbers | {"sha256": hashlib.sha256(lines.encode()).hexdigest()}


def of_file(path):
    """The identity of a file, or of all files in a folder, such as RACE's."""
    if is_address(path):
        return {"bytes": list_files(str(path))[str(path)], "sha256": sha256(path)}
    if Path(path).is_dir():
        parts = [(file.relative_to(path).as_posix(), of_file(file)) for file in Path(path).rglob("*") if file.is_file()]
        lines = "".join(f"{identity['sha256']} {name}\n" for name, identity in sorted(parts, key=lambda part: part[0]))
        return {"files": len(parts), "sha256": hashlib.sha256(lines.encode()).hexdigest()}
    try:
        return {"bytes": Path(path).stat().st_size, "sha256": sha256(path)}
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def check(folder, inputs):
    """Refuses to resume a run with other data.

    Args:
        folder: the run directory. One without a record of its data is accepted.
        inputs: setting, such as "data.shards" -> (its value, its identity).

    Raises:
        RunDirectoryError: names the setting and what differs.
        DataError: the record is damaged.
    """
    path = Path(folder) / RECORD
    if not is_there(path):
        return
    record = read_json_object(path)
    for setting, (value, identity) in inputs.items():
        known = record.get(setting, {})
        if not isinstance(known, dict):
            raise DataError(
                f"{path}: '{setting}' is {brief(known)}; restore the file, or delete it to resume without this check"
            )
        identity = _plain(identity)
        for key in known.keys() & identity.keys():  # settings that only a newer version writes are not compared
            if known[key] != identity[key]:
                differing = [k for k in identity if k in known and known[k] != identity[k]]  # checksums stand last
                raise RunDirectoryError(
                    f"{folder} was trained on other data: {setting}={value} has {differing[0]} "
                    f"{brief(identity[differing[0]])}, the data of the run had {brief(known[differing[0]])}. "
                    f"Choose another output directory, or use the same data to resume the run"
                )


def record(folder, inputs):
    """Writes inputs.json, the record of the data; `inputs` as for `check`."""
    with atomic_write(Path(folder) / RECORD) as file:
        json.dump({setting: _plain(identity) for setting, (_, identity) in inputs.items()}, file, indent=1)


def _plain(identity):
    """The value after a round trip through JSON."""
    return json.loads(json.dumps(identity))
