"""Which files a corpus consists of: those that are named, and the text in folders and globs, here or at addresses."""

import functools
import glob
import itertools
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from absl import logging

from bert_tf.errors import DataError
from bert_tf.files import is_address, list_files
from bert_tf.hub import CORPORA, local_data

TEXT_SUFFIXES = (*CORPORA, *(f"{ending}.gz" for ending in CORPORA))
TABLE_SUFFIXES = (".tsv", ".csv", ".tsv.gz", ".csv.gz", ".parquet")
# A file that is named may have any suffix except those of formats that are not plain text.
_NOT_TEXT = {".json": "write one JSON object a line and call it .jsonl", ".xlsx": "save it as .csv"}
_NOT_TEXT |= dict.fromkeys((".bz2", ".xz", ".zst"), "unpack it, or compress it with gzip")
_NOT_TEXT |= dict.fromkeys((".zip", ".tar", ".tgz"), "unpack it")
_VOCABULARIES = ("vocab.txt", "merges.txt")


@dataclass(frozen=True)
class CorpusFile:
    """One input: its path or address, its name relative to the input that led to it, its size."""

    path: Path | str
    name: str
    bytes: int


def find_files(inputs):
    """The files that `inputs` name, in a deterministic order.

    Folders are searched recursively for `TEXT_SUFFIXES`; a folder without such files, for
    `TABLE_SUFFIXES`. Hidden files are left out, and, with one line of log, what this library writes:
    tokenizers and vocabularies, shards, runs, exports. The same is left out of globs.

    Args:
        inputs: a path or an address, or a list of them; each of a file, a folder or a glob pattern (`**` allowed).

    Returns:
        A list of `CorpusFile`: the inputs in the order given, sorted within a folder or glob.
        A file that is reached twice is read once, where it comes first.

    Raises:
        DataError: a path or pattern that matches nothing, a file that is not text, a folder or link
            in a folder that cannot be read.
    """
    files, left_out = {}, []
    for item in [inputs] if isinstance(inputs, (str, Path)) else inputs:
        item = local_data(item)
        if is_address(item):
            for address, name, size in _at_address(str(item).rstrip("/"), left_out):
                files.setdefault(address, CorpusFile(address, name, size))
            continue
        try:
            for path, name in _named(item, Path(item).expanduser(), left_out):
                _check(path)
                # The manifest is UTF-8; file names need not be.
                name = os.fsencode(name).decode("utf-8", "backslashreplace")
                files.setdefault(path.resolve(), CorpusFile(path, name, path.stat().st_size))
        except OSError as error:
            raise DataError(f"corpus {error.filename or item}: {error.strerror}") from None
        except ValueError as error:  # NUL, or a surrogate that no encoding has
            raise DataError(f"corpus {str(item)!r}: this is not a name of a file ({error}); check it") from None
    if not files:
        raise DataError("no corpus given; name at least one .txt, .jsonl, .tsv, .csv or .parquet file, folder or glob")
    if left_out:
        shown = ", ".join(f"{path} ({what})" for path, what in left_out[:5])
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        logging.warning("left out of the corpus: %s%s", shown, more)
    return list(files.values())


def _at_address(address, left_out):
    """The files that an address names: a list of (address, name, bytes)."""
    sizes = list_files(address)
    if list(sizes) == [address]:
        _check_kind(address)
        return [(address, address.rpartition("/")[2], sizes[address])]
    is_glob = glob.has_magic(address)
    root = address.rpartition("/")[0] if is_glob else address
    while glob.has_magic(root):
        root = root.rpartition("/")[0]
    names, holds = [file.removeprefix(f"{root}/") for file in sizes], {}
    for name in names:
        for folder in PurePosixPath(name).parents:
            holds.setdefault(folder, set()).add(PurePosixPath(name).relative_to(folder).parts[0])
    names_by_kind = {True: [], False: []}  # whether it is a table
    for name in map(PurePosixPath, names):
        what = next(filter(None, (_what_we_wrote(holds[f]) for f in name.parents if is_glob or f.parts)), None)
        what = "a vocabulary" if name.name in _VOCABULARIES else what
        if what:
            left_out.append((f"{root}/{name}", what))
        elif is_glob or (_is_read(name.name) and not any(part.startswith(".") for part in name.parts)):
            names_by_kind[not is_glob and name.name.lower().endswith(TABLE_SUFFIXES)].append(str(name))
    if not any(names_by_kind.values()):
        raise DataError(f"corpus {address}: it holds no {', '.join(TEXT_SUFFIXES + TABLE_SUFFIXES)} file")
    begin = "" if is_glob else f"{root.rpartition('/')[2]}/"
    for name in names_by_kind[False] or names_by_kind[True]:
        _check_kind(name)
    files = [(f"{root}/{name}", name) for name in names_by_kind[False] or names_by_kind[True]]
    return [(file, PurePosixPath(name).name if is_glob else begin + name, sizes[file]) for file, name in files]


def _named(item, path, left_out):
    """The files that one input names: a list of (path, name)."""
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        return _of_glob(item, path, left_out)
    return _of_folder(path, left_out) if path.is_dir() else [(path, path.name)]


def _of_glob(item, path, left_out):
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
    # Python's glob takes a folder that cannot be read for an empty one.
    for _ in os.walk(root, onerror=_raise) if root.is_dir() else ():
        if "**" not in path.parts:
            break
    files, wrote = [], functools.cache(lambda folder: _what_we_wrote(os.listdir(folder)))
    for match in map(Path, sorted(glob.glob(str(path), recursive=True))):
        if match.is_dir():
            files += _of_folder(match, left_out) if "**" not in str(path) else []
            continue
        folders = [folder for folder in match.parents if root in folder.parents]
        what = "a vocabulary" if match.name in _VOCABULARIES else next(filter(None, map(wrote, folders)), None)
        if what:
            left_out.append((match, what))
        else:
            files.append((match, match.name))
    if not files:
        why = "" if not left_out else f" but {left_out[0][0]} ({left_out[0][1]})"
        raise DataError(f"corpus {item}: the pattern matches no file{why}")
    return files


def _raise(error):
    raise error


def _of_folder(folder, left_out):
    texts, tables, ignored = [], [], []
    for path in _walk(folder, {folder.resolve()}, ignored):
        (tables if path.name.endswith(TABLE_SUFFIXES) else texts).append(path)
    if texts and tables:
        ignored += [(path, "a table beside text; name it to read it") for path in sorted(tables)]
    left_out += ignored
    files = sorted((path.relative_to(folder).as_posix(), path) for path in texts or tables)
    if not files:
        why = f"; what it holds is left out: {ignored[0][0].name} ({ignored[0][1]})" if ignored else ""
        raise DataError(f"corpus {folder}: the folder holds no {', '.join(TEXT_SUFFIXES + TABLE_SUFFIXES)} file{why}")
    root = folder.resolve().name
    return [(path, f"{root}/{name}") for name, path in files]


def _walk(folder, visited, ignored):
    """Yields the texts and tables in a folder and its subfolders; adds what this library wrote to `ignored`."""
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if name.startswith("."):
            continue
        if path.is_dir():
            what = _what_we_wrote(os.listdir(path))
            if what:
                ignored.append((path, what))
            elif path.resolve() not in visited:  # links may lead in circles
                visited.add(path.resolve())
                yield from _walk(path, visited, ignored)
        elif name in _VOCABULARIES:
            ignored.append((path, "a vocabulary"))
        elif _is_read(name):
            yield path


def _is_read(name):
    return name.lower().endswith(TEXT_SUFFIXES + TABLE_SUFFIXES)


def _what_we_wrote(names):
    """What a folder of this library is, of the names of what it holds, in a word or two; None for any other folder."""
    names = set(names)
    if "tokenizer_config.json" in names:
        return "a tokenizer"
    if "config.yaml" in names and names & {"checkpoints", "metrics.jsonl", "task.json", "summary.json"}:
        return "a run"
    if "saved_model.pb" in names:
        return "an export"
    if "manifest.json" in names and any(n.startswith("shard-0") for n in names):
        return "shards"
    return None


def _check(path):
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        link = "a link to a file that does not exist; fix or remove it"
        raise DataError(f"corpus {path}: {link if path.is_symlink() else 'no such file or folder'}") from None
    if not stat.S_ISREG(mode):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise DataError(
            f"corpus {path}: it is {what}, and a corpus is read more than once; write the text to a file first"
        )
    _check_kind(path)


def _check_kind(path):
    kind, _ = kind_of(path)
    if kind in _NOT_TEXT:
        raise DataError(f"corpus {path}: {kind} is not a format that is read here; {_NOT_TEXT[kind]}")


def kind_of(path):
    """(the suffix of a file in lower case, without that of compression; whether it is compressed by gzip).

    Example:
        kind_of(Path("Texts.JSONL.gz"))  # ('.jsonl', True)
    """
    *_, before, suffix = ["", "", *PurePath(path).suffixes]
    return (before if suffix.lower() == ".gz" else suffix).lower(), suffix.lower() == ".gz"
