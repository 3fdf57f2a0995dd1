"""Which files a corpus consists of: those that are named, and the text in folders and globs, here or at addresses."""

import collections
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
    files, left_out = {}, {}
    for item in [inputs] if isinstance(inputs, (str, Path)) else inputs:
        item = local_data(item)
        if is_address(item):
            for file in _at_address(str(item).rstrip("/"), left_out):
                files.setdefault(file.path, file)
            continue
        try:
            for path, name in _named(item, left_out):
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
        shown = ", ".join(f"{path} ({what})" for path, what in [*left_out.items()][:5])
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        logging.warning("left out of the corpus: %s%s", shown, more)
    return list(files.values())


def _named(item, left_out):
    """The files that an input on this machine names: a list of (path, name)."""
    path = Path(item).expanduser()
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        return _of_folder(path, left_out) if path.is_dir() else [(path, path.name)]
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
    if "**" in path.parts:  # Python's glob takes a folder that cannot be read for an empty one
        collections.deque(os.walk(root, onerror=_raise), maxlen=0)
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    names = [match.relative_to(root).as_posix() for match in matches if not match.is_dir()]
    folders = {match for match in matches if match.is_dir() and "**" not in str(path)}
    read = set(_choose(item, root, names, True, _listed(root), left_out)) if names or not folders else ()
    files = []
    for match in matches:
        if match in folders:
            files += _of_folder(match, left_out)
        elif match.relative_to(root).as_posix() in read:
            files.append((match, match.name))
    return files


def _raise(error):
    raise error


def _of_folder(folder, left_out):
    root, seen, names = folder.resolve(), set(), []
    for path, folders, files in os.walk(folder, onerror=_raise, followlinks=True):
        if (real := Path(path).resolve()) in seen:  # links may lead in circles
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names += [Path(path, name).relative_to(folder).as_posix() for name in files]
    return [(folder / n, f"{root.name}/{n}") for n in _choose(folder, folder, names, False, _listed(folder), left_out)]


def _listed(root):
    """A function: what a folder below `root` holds."""
    return functools.cache(lambda folder: os.listdir(root / folder))


def _at_address(address, left_out):
    sizes = list_files(address)
    if list(sizes) == [address]:
        _check_kind(address)
        return [CorpusFile(address, address.rpartition("/")[2], sizes[address])]
    is_glob = glob.has_magic(address)
    root = address.rpartition("/")[0] if is_glob else address
    while glob.has_magic(root):
        root = root.rpartition("/")[0]
    names, holds = [file.removeprefix(f"{root}/") for file in sizes], {}
    for name in map(PurePosixPath, names):
        for folder in name.parents:
            holds.setdefault(folder, set()).add(name.relative_to(folder).parts[0])
    files = []
    for name in _choose(address, root, names, is_glob, holds.get, left_out):
        _check_kind(name)
        short = PurePosixPath(name).name if is_glob else f"{root.rpartition('/')[2]}/{name}"
        files.append(CorpusFile(f"{root}/{name}", short, sizes[f"{root}/{name}"]))
    return files


def _choose(item, root, names, is_glob, holds, left_out):
    """Of the files below `root`, by their names there, those that are read, sorted.

    Args:
        item: the folder or pattern, as errors name it.
        is_glob: whether the names match a pattern: text and tables with any suffix.
        holds: a function: the names in a folder below `root`.
        left_out: for what is not read, path -> why.
    """
    texts, tables, ignored = [], [], {}
    for name in map(PurePosixPath, names):
        if not is_glob and any(part.startswith(".") for part in name.parts):
            continue
        wrote = {folder: _what_we_wrote(holds(folder)) for folder in reversed(name.parents) if folder.parts}
        wrote[name] = "a vocabulary" if name.name in _VOCABULARIES else None
        outermost = next(filter(wrote.get, wrote), None)
        if outermost:
            ignored[outermost] = wrote[outermost]
        elif is_glob or name.name.lower().endswith(TEXT_SUFFIXES + TABLE_SUFFIXES):
            (tables if not is_glob and name.name.lower().endswith(TABLE_SUFFIXES) else texts).append(str(name))
    if texts and tables:
        ignored |= dict.fromkeys(map(PurePosixPath, sorted(tables)), "a table beside text; name it to read it")
    if not texts and not tables:
        what = "matches no" if is_glob else f"holds no {', '.join(TEXT_SUFFIXES + TABLE_SUFFIXES)}"
        why = [f"; {path} is left out ({what})" for path, what in ignored.items()][:1]
        raise DataError(f"corpus {item}: it {what} file{''.join(why)}")
    for path, what in ignored.items():
        left_out[root / path if isinstance(root, Path) else f"{root}/{path}"] = what
    return sorted(texts or tables)


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
