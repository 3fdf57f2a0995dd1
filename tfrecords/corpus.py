"""Documents out of text files: .txt, .jsonl, either gzipped, folders and globs of them.

Everything streams: memory is bounded by one line of a .jsonl file, and by `max_document_bytes`
for the rest, whatever the sizes of files and documents.
"""

import functools
import glob
import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bert_tf.config import nearest
from bert_tf.errors import DataError

SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")
# A file that is named outright may end in anything, except in what is surely not plain text.
_NOT_TEXT = {
    ".json": "write one JSON object a line and call it .jsonl",
    ".csv": "convert it to .jsonl with one document a line",
    ".tsv": "convert it to .jsonl with one document a line",
    ".parquet": "convert it to .jsonl with one document a line",
    ".bz2": "unpack it, or compress it with gzip",
    ".xz": "unpack it, or compress it with gzip",
    ".zst": "unpack it, or compress it with gzip",
    ".zip": "unpack it",
    ".tar": "unpack it",
    ".tgz": "unpack it",
}
_BOM = b"\xef\xbb\xbf"
_READ_LIMIT = 1 << 20
MAX_LINE_BYTES = 256 << 20


@dataclass(frozen=True)
class CorpusFile:
    """One input: where it lies, its name relative to the input that led to it, its size on disk."""

    path: Path
    name: str
    bytes: int


class Document(NamedTuple):
    """UTF-8 `text` with "\\n" line ends; `begins` is False for the later parts of a document that was cut."""

    text: bytes
    begins: bool


def find_files(inputs):
    """The files that `inputs` name, in a deterministic order.

    Args:
        inputs: a path or a list of them; each a file, a folder (searched recursively for
            `SUFFIXES`; hidden files are left out) or a glob pattern (`**` allowed).

    Returns:
        A list of `CorpusFile`: the inputs in the order given, sorted within a folder or glob.
        A file that is reached twice is read once, where it came first.

    Raises:
        DataError: a path or pattern that matches nothing, or a file that is not text.
    """
    files = {}
    for item in [inputs] if isinstance(inputs, (str, Path)) else inputs:
        path = Path(item).expanduser()
        if path.is_file():
            found = [(path, path.name)]
        elif path.is_dir():
            found = _in_folder(path)
        else:
            matches = [Path(p) for p in sorted(glob.glob(str(path), recursive=True))]
            found = [(p, p.name) for p in matches if p.is_file()]
            found += [pair for p in matches if p.is_dir() and "**" not in str(path) for pair in _in_folder(p)]
            if not found:
                what = "the pattern matches no file" if glob.has_magic(str(path)) else "no such file or folder"
                raise DataError(f"corpus {item}: {what}")
        for file, name in found:
            mend = _NOT_TEXT.get(file.suffix.lower())
            if mend:
                raise DataError(f"corpus {file}: {file.suffix} is not a format that is read here; {mend}")
            files.setdefault(file.resolve(), CorpusFile(file, name, file.stat().st_size))
    if not files:
        raise DataError("no corpus given; name at least one .txt or .jsonl file, folder or glob")
    return list(files.values())


def _in_folder(folder):
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.name.endswith(SUFFIXES) and path.is_file() and not any(p.startswith(".") for p in name.parts):
            found.append((name.as_posix(), path))
    if not found:
        raise DataError(f"corpus {folder}: the folder holds no {', '.join(SUFFIXES)} file")
    root = folder.resolve().name
    return [(path, f"{root}/{name}") for name, path in sorted(found)]


class CorpusReader:
    """Iterates over the documents of files, once.

    In .txt (and any other plain text) a blank line ends a document; in .jsonl each line is one,
    its text in the field `text_field`; line breaks within a document are kept, "\\r\\n" becomes
    "\\n", a byte order mark is dropped. A document longer than `max_document_bytes` is cut there
    into several, at the last line end before the bound, else the last blank, else the last
    character. Documents without text are left out.

    Args:
        files: what `find_files` returned.
        text_field: the field of a .jsonl object that holds the text.
        errors: "strict", or "replace" to put U+FFFD for bytes that are not UTF-8.
        max_document_bytes: the longest document that stays whole, in bytes of UTF-8.

    Attributes:
        replaced: how many U+FFFD were put so far.
        position: bytes read so far, as they lie on disk (compressed for .gz).

    Raises, while iterating:
        DataError: bytes that are not UTF-8, a .jsonl line that is not an object with a text, a
            damaged .gz; with file and line (from 1).
    """

    def __init__(self, files, text_field="text", errors="strict", max_document_bytes=1 << 20):
        self._files, self._field, self._errors = files, text_field, errors
        self._bound = max_document_bytes
        self._before, self._raw = 0, None
        self.replaced = 0

    @property
    def position(self):
        return self._before + (self._raw.tell() if self._raw else 0)

    def __iter__(self):
        for file in self._files:
            try:
                with open(file.path, "rb") as self._raw:
                    is_gzip = file.path.suffix == ".gz"
                    stream = gzip.open(self._raw) if is_gzip else self._raw
                    plain = file.path.with_suffix("") if is_gzip else file.path
                    read = self._json_lines if plain.suffix == ".jsonl" else self._text
                    yield from read(stream, file.path)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(f"{file.path} is damaged or not gzip ({error}); fetch or compress it again") from None
            except OSError as error:
                raise DataError(f"cannot read {file.path}: {error.strerror or error}") from None
            finally:
                self._raw = None
            self._before += file.bytes

    def _text(self, stream, path):
        parts, size = [], 0  # the document so far
        number = 1  # of the line being read
        first = 1  # the line on which `parts` begin
        begins, whole = True, True
        for line in iter(functools.partial(stream.readline, _READ_LIMIT), b""):
            if number == 1 and whole:
                line = line.removeprefix(_BOM)
            blank = whole and (not line or line.isspace())
            if line.endswith(b"\r"):
                line += stream.readline(1)  # the limit may have cut "\r\n" in two
            whole = line.endswith(b"\n")
            if blank and whole:
                if parts:
                    yield from self._finish(parts, begins, path, first)
                parts, size, begins = [], 0, True
            else:
                if not parts:
                    first = number
                if line.endswith(b"\r\n"):
                    line = line[:-2] + b"\n"
                parts.append(line)
                size += len(line)
                if size > self._bound + 1:  # beyond the line end that the last line may have
                    text = b"".join(parts)
                    while len(text) > self._bound + 1:
                        head, tail = _cut(text, self._bound)
                        yield from self._finish([head], begins, path, first)
                        first += text.count(b"\n", 0, len(text) - len(tail))
                        text, begins = tail, False
                    parts, size = [text], len(text)
            number += whole
        if parts:
            yield from self._finish(parts, begins, path, first)

    def _finish(self, parts, begins, path, line):
        text = self._check(b"".join(parts), path, line).strip()
        if text:
            yield Document(text, begins)

    def _json_lines(self, stream, path):
        for number, line in enumerate(iter(functools.partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise DataError(f"{path}:{number}: a line longer than {MAX_LINE_BYTES >> 20} MiB; one document a line")
            if number == 1:
                line = line.removeprefix(_BOM)
            if line.isspace() or not line:
                continue
            text, begins = self._field_text(self._check(line, path, number), path, number), True
            while len(text) > self._bound:
                head, text = _cut(text, self._bound)
                yield from self._finish([head], begins, path, number)
                begins = False
            yield from self._finish([text], begins, path, number)

    def _field_text(self, line, path, number):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            hint = getattr(error, "msg", str(error))
            raise DataError(f"{path}:{number}: not a JSON object on one line ({hint})") from None
        if not isinstance(value, dict):
            raise DataError(f"{path}:{number}: the line is not a JSON object like {{\"{self._field}\": ...}}")
        text = value.get(self._field)
        if not isinstance(text, str):
            if self._field in value:
                raise DataError(f"{path}:{number}: the field '{self._field}' is {type(text).__name__}, not a string")
            raise DataError(
                f"{path}:{number}: no field '{self._field}'{nearest(self._field, value)}; "
                "name the field with text_field"
            )
        try:
            data = text.encode()
        except UnicodeEncodeError:  # an unpaired surrogate, written as an escape
            if self._errors == "strict":
                raise DataError(
                    f"{path}:{number}: '{self._field}' holds half a surrogate pair; mend it, or ask for errors: replace"
                ) from None
            data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            self.replaced += data.count(b"\xef\xbf\xbd") - text.count("\ufffd")
        return data.replace(b"\r\n", b"\n").strip()

    def _check(self, data, path, line):
        """`data` if it is UTF-8; else DataError, or `data` mended where that was asked for."""
        try:
            data.decode()
            return data
        except UnicodeDecodeError as error:
            if self._errors == "replace":
                mended = data.decode("utf-8", "replace").encode()
                self.replaced += mended.count(b"\xef\xbf\xbd") - data.count(b"\xef\xbf\xbd")
                return mended
            line += data.count(b"\n", 0, error.start)
            utf16 = "; the file looks like UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
            raise DataError(
                f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8{utf16}; "
                "convert the file, or ask for errors: replace"
            ) from None


def _cut(text, bound):
    """Cuts `text`, which is longer than `bound`, into a head of at most `bound` bytes and the rest."""
    for mark in (b"\n", b" "):
        at = text.rfind(mark, 1, bound + 1)
        if at > 0:
            return text[:at], text[at + 1 :]
    at = bound
    while at > max(bound - 3, 1) and text[at] & 0xC0 == 0x80:  # never within a character
        at -= 1
    return text[:at], text[at:]


def read_texts(inputs, text_field="text", errors="strict"):
    """The texts of a corpus as strings, one document at a time; what training a vocabulary takes.

    Args and errors: as `find_files` and `CorpusReader`.
    """
    for document in CorpusReader(find_files(inputs), text_field, errors):
        yield document.text.decode("utf-8")
