"""Which files a corpus consists of: those that are named, and what folders and globs hold of text."""

import functools
import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from absl import logging

from bert_tf.errors import DataError

TEXT_SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")
TABLE_SUFFIXES = (".tsv", ".csv", ".tsv.gz", ".csv.gz", ".parquet")
# A file that is named outright may end in anything, except in what is surely not plain text.
_NOT_TEXT = {
    ".json": "write one JSON object a line and call it .jsonl",
    ".xlsx": "save it as .csv",
    ".bz2": "unpack it, or compress it with gzip",
    ".xz": "unpack it, or compress it with gzip",
    ".zst": "unpack it, or compress it with gzip",
    ".zip": "unpack it",
    ".tar": "unpack it",
    ".tgz": "unpack it",
}
_VOCABULARIES = ("vocab.txt", "merges.txt")
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class CorpusFile:
    """One input: where it lies, its name relative to the input that led to it, its size on disk."""

    path: Path
    name: str
    bytes: int


def find_files(inputs):
    """The files that `inputs` name, in a deterministic order.

    Folders are searched recursively for `TEXT_SUFFIXES`; a folder without such files, for
    `TABLE_SUFFIXES`. Hidden files are left out, and, with one line of log, what this library writes:
    tokenizers and vocabularies, shards, runs, exports. The same is left out of globs.

    Args:
        inputs: a path or a list of them; each a file, a folder or a glob pattern (`**` allowed).

    Returns:
        A list of `CorpusFile`: the inputs in the order given, sorted within a folder or glob.
        A file that is reached twice is read once, where it came first.

    Raises:
        DataError: a path or pattern that matches nothing, a file that is not text, a folder or link
            in a folder that cannot be read.
    """
    files, left_out = {}, []
    for item in [inputs] if isinstance(inputs, (str, Path)) else inputs:
        path = Path(item).expanduser()
        try:
            found = _named(item, path, left_out)
            for file, name in found:
                _check_suffix(file)
                # The manifest is UTF-8; file names need not be.
                name = os.fsencode(name).decode("utf-8", "backslashreplace")
                files.setdefault(file.resolve(), CorpusFile(file, name, file.stat().st_size))
        except OSError as error:
            raise DataError(f"corpus {error.filename or item}: {error.strerror}") from None
    if not files:
        raise DataError("no corpus given; name at least one .txt, .jsonl, .tsv, .csv or .parquet file, folder or glob")
    if left_out:
        shown = ", ".join(f"{path} ({what})" for path, what in left_out[:5])
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        logging.warning("left out of the corpus: %s%s", shown, more)
    return list(files.values())


def _named(item, path, left_out):
    """What one input names: a list of (path, name)."""
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        return _of_glob(item, path, left_out)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        what = "a link to a file that does not exist" if path.is_symlink() else "no such file or folder"
        raise DataError(f"corpus {item}: {what}") from None
    if stat.S_ISDIR(mode):
        return _of_folder(path, left_out)
    _check_regular(path, mode)
    return [(path, path.name)]


def _of_glob(item, path, left_out):
    # Python's glob takes a folder that cannot be read for an empty one.
    parts = path.parts
    root = Path(*parts[: next(i for i, part in enumerate(parts) if glob.has_magic(part))])
    if "**" in parts and root.is_dir():
        for _ in os.walk(root, onerror=_raise):
            pass
    elif root.is_dir():
        os.listdir(root)
    found, wrote = [], functools.cache(_what_we_wrote)
    for match in sorted(glob.glob(str(path), recursive=True)):
        match = Path(match)
        if match.is_dir():
            found += _of_folder(match, left_out) if "**" not in str(path) else []
            continue
        _check_regular(match, match.stat().st_mode)
        folders = [folder for folder in match.parents if root in folder.parents]
        what = "a vocabulary" if match.name in _VOCABULARIES else next(filter(None, map(wrote, folders)), None)
        if what:
            left_out.append((match, what))
        else:
            found.append((match, match.name))
    if not found:
        why = "" if not left_out else f" but {left_out[0][0]} ({left_out[0][1]})"
        raise DataError(f"corpus {item}: the pattern matches no file{why}")
    return found


def _raise(error):
    raise error


def _of_folder(folder, left_out):
    texts, tables, ours = [], [], []
    for path in _walk(folder, {folder.resolve()}, ours):
        (tables if path.name.endswith(TABLE_SUFFIXES) else texts).append(path)
    if texts and tables:
        what = "a table beside text; name it to read it"
        ours += [(path, what) for path in sorted(tables)]
    left_out += ours
    found = sorted((path.relative_to(folder).as_posix(), path) for path in texts or tables)
    if not found:
        why = f"; what it holds is left out: {ours[0][0].name} ({ours[0][1]})" if ours else ""
        raise DataError(f"corpus {folder}: the folder holds no {', '.join(TEXT_SUFFIXES + TABLE_SUFFIXES)} file{why}")
    root = folder.resolve().name
    return [(path, f"{root}/{name}") for name, path in found]


def _walk(folder, seen, ours):
    """The files of texts and tables in a folder and those in it; what is ours is added to `ours`."""
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if name.startswith("."):
            continue
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise DataError(f"corpus {path}: a link to a file that does not exist; fix or remove it") from None
        if stat.S_ISDIR(mode):
            what = _what_we_wrote(path)
            if what:
                ours.append((path, what))
            elif path.resolve() not in seen:  # links may lead in circles
                seen.add(path.resolve())
                yield from _walk(path, seen, ours)
        elif name in _VOCABULARIES:
            ours.append((path, "a vocabulary"))
        elif name.endswith(TEXT_SUFFIXES + TABLE_SUFFIXES):
            _check_regular(path, mode)
            yield path


def _what_we_wrote(folder):
    """What of this library's a folder is, in a word or two; None for any other folder."""
    names = set(os.listdir(folder))
    if "tokenizer_config.json" in names:
        return "a tokenizer"
    if "config.yaml" in names and names & {"checkpoints", "metrics.jsonl", "task.json", "summary.json"}:
        return "a run"
    if "saved_model.pb" in names:
        return "an export"
    if names & {"manifest.json", "tokens.json"} and any(n.startswith(("shard-0", "tokens-0")) for n in names):
        return "shards"
    return None


def _check_regular(path, mode):
    for is_special, what in _SPECIAL:
        if is_special(mode):
            raise DataError(
                f"corpus {path}: it is {what}, and a corpus is read more than once; write the text to a file first"
            )


def _check_suffix(file):
    advice = _NOT_TEXT.get(file.suffix.lower())
    if advice:
        raise DataError(f"corpus {file}: {file.suffix} is not a format that is read here; {advice}")
