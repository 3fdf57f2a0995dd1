"""Documents out of files of text and tables: .txt, .jsonl, .tsv, .csv, each also gzipped, and .parquet.

Everything streams: memory is bounded by one line of a .jsonl file or field of a table, and by
`max_document_bytes` for the rest, whatever the sizes of files and documents. A large plain file can be read in parts,
each by another process: see `Part`.
"""

import functools
import gzip
import io
import json
import re
import zlib
from typing import NamedTuple

from bert_tf.config import nearest
from bert_tf.encodings import conversion_advice, find_name
from bert_tf.errors import Advice, DataError
from bert_tf.files import open_file
from tfrecords.corpus.files import CorpusFile, find_files, kind_of
from tfrecords.corpus.tables import read_delimited, read_parquet

_BOM = b"\xef\xbb\xbf"
_READ_LIMIT = 1 << 20
_SEARCHED = 1 << 16  # bytes before the end of a part in which white space is looked for
MAX_LINE_BYTES = 256 << 20
# A .gz may unpack to so many times its size, and to this many bytes in any case. Text has a tenth of that ratio.
_MOST_UNPACKED, _ALWAYS_UNPACKED = 256, 1 << 30
# Where a plain file may be cut: after a blank line, after a line, before white space that follows a word, before a
# character. Each is found from the byte before on, of which it needs one at least.
_BLANK_LINE, _LINE_END, _SPACE, _CHARACTER = map(
    re.compile, (rb"\n[^\S\n]*\n", rb"\n", rb"\S(?=\s)", rb"(?s:.)(?=[^\x80-\xbf])")
)
#: Kinds of files of which every line is a document.
LINES = (".jsonl", ".ndjson")
_NAME_THE_FIELD = "name the field: ", Advice("text_field", "NAME")
_REPLACE = "put U+FFFD for such bytes with ", Advice("errors", "replace")


class Document(NamedTuple):
    """UTF-8 `text`, with "\\n" line ends unless it is kept; `begins` is False for the later parts of a cut document."""

    text: bytes
    begins: bool


class Part(NamedTuple):
    """A file of a corpus, or a part of a plain one.

    A part begins and ends at the first place at or after `start` and `end` where the file may be cut: at a document,
    or in a long document at a line, a word or a character. So it depends on the file and these two numbers alone.

    Attributes:
        file: a `CorpusFile`.
        start, end: bytes from the beginning of the file; `end` None for the whole file.
    """

    file: CorpusFile
    start: int = 0
    end: int | None = None

    @property
    def bytes(self):
        return self.file.bytes if self.end is None else self.end - self.start


class CorpusReader:
    """Iterates over the documents of files, once.

    In .txt (and any other plain text) a blank line ends a document; in .jsonl each line is one, its
    text in the field `text_field`; in a table each row, its text in the column of that name. Line
    breaks within a document are kept, "\\r\\n" becomes "\\n", a byte order mark is dropped. A longer document than
    `max_document_bytes` is cut there into several, at the last line end before the bound,
    else the last space, else the last character. Documents without text are left out.

    Args:
        files: from `files.find_files`; or `Part`s of them.
        text_field: the field of a .jsonl object, or the column of a table, that holds the text. A
            column may also be a number from 0, of a table without a header. Where a table has no column
            of the name "text", the one of `tables.TEXT_NAMES` that it has.
        errors: "strict", or "replace" to replace bytes that are not UTF-8 by U+FFFD.
        max_document_bytes: the longest document that stays whole, in bytes of UTF-8.
        one_document_a_line: in .txt every line is a document, as in a file of one review a line.
        keep_text: every document is its text as it is: white space at its ends and line ends are kept, and a .txt is
            one document. One that is cut is cut before white space, of which nothing is lost.

    Attributes:
        replaced: how many U+FFFD were put so far.
        position: bytes read so far, as on disk (compressed for .gz).

    Raises, while iterating:
        DataError: bytes that are not UTF-8, a .jsonl line that is not an object with a text, a table
            without such a column, a damaged .gz or one that unpacks without end; with file and line (from 1).
    """

    def __init__(
        self,
        files,
        text_field="text",
        errors="strict",
        max_document_bytes=1 << 20,
        one_document_a_line=False,
        keep_text=False,
    ):
        self._parts = [file if isinstance(file, Part) else Part(file) for file in files]
        self._field, self._errors, self._keep = text_field, errors, keep_text
        self._bound, self._lines_are_documents = max_document_bytes, one_document_a_line
        self._before, self._within = 0, lambda: 0
        self._start, self._begins = 0, True  # of what is read of a file: its offset, whether a document begins there
        self.replaced = 0

    @property
    def position(self):
        return self._before + self._within()

    def __iter__(self):
        for part in self._parts:
            path = part.file.path
            try:
                if kind_of(path)[0] == ".parquet":
                    yield from self._parquet(part.file)
                else:
                    yield from self._stream(part)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(f"{path} is damaged or not gzip ({error}); fetch or compress it again") from None
            except OSError as error:
                raise DataError(f"cannot read {path}: {error.strerror or error}") from None
            finally:
                self._within, self._start, self._begins = (lambda: 0), 0, True
            self._before += part.bytes

    def _stream(self, part):
        with open_file(part.file.path) as raw:
            kind, is_gzip = kind_of(part.file.path)
            stream = _Unpacked(raw, part.file) if is_gzip else raw
            if part.end is not None:
                end, _ = self._border(raw, part, part.end, kind)
                self._start, self._begins = self._border(raw, part, part.start, kind)
                raw.seek(self._start)
                raw = stream = io.BufferedReader(io.BytesIO(raw.read(end - self._start)))
            self._within = raw.tell
            if not self._start and stream.peek(len(_BOM)).startswith(_BOM):
                stream.read(len(_BOM))
            yield from self._documents(stream, part.file.path, kind)

    def _border(self, stream, part, at, kind):
        """Where a part begins or ends that was asked to at byte `at`: an offset, and whether a document begins there."""
        if at in (0, part.file.bytes):
            return at, True
        if self._lines_are_documents or kind in (*LINES, ".tsv"):
            patterns, most = [_LINE_END], MAX_LINE_BYTES
        else:
            patterns, most = [_SPACE, _CHARACTER], self._bound
            patterns = patterns if self._keep else [_BLANK_LINE, _LINE_END, *patterns]
        for size in (_SEARCHED, most):  # mostly there is one nearby
            stream.seek(at - 1)
            data = stream.read(size)
            if patterns[0].search(data):
                break
        border = next(filter(None, (pattern.search(data) for pattern in patterns)), None)
        begins = len(patterns) == 1 or (border is not None and border.re is _BLANK_LINE)
        return at - 1 + (border.end() if border else len(data)), begins

    def _documents(self, stream, path, kind):
        """The documents of an open file; `kind` is its suffix, such as ".tsv"."""
        if kind in (".tsv", ".csv"):
            yield from self._table(stream, path, "\t" if kind == ".tsv" else ",")
        elif kind in LINES:
            yield from self._json_lines(stream, path)
        elif self._lines_are_documents:
            for line, number in self._lines(stream, path):
                line = self._check(line, path, number).removesuffix(b"\n").removesuffix(b"\r")
                yield from self._cut_document(self._clean(line), path, number)
        elif self._keep:
            yield from self._whole_text(stream, path)
        else:
            yield from self._text(stream, path)

    def _whole_text(self, stream, path):
        """A file as one document, in parts of at most `max_document_bytes`."""
        text, begins, line = b"", self._begins, 1
        for block in iter(functools.partial(stream.read, self._bound), b""):
            text += block
            while len(text) > self._bound:
                head, text = _cut_before_space(text, self._bound)
                yield from self._finish([head], begins, path, line)
                begins, line = False, line + head.count(b"\n")
        yield from self._finish([text], begins, path, line)

    def _text(self, stream, path):
        parts, size, begins = [], 0, self._begins  # the document so far, and whether it begins with `parts`
        number = first = 1  # of the line being read, and of the first line of `parts`
        ended = True  # whether the line before was read to its end
        for line in iter(functools.partial(stream.readline, _READ_LIMIT), b""):
            blank = ended and (not line or line.isspace())
            if line.endswith(b"\r"):
                line += stream.readline(1)  # the limit may be between "\r" and "\n"
            ended = line.endswith(b"\n")
            if blank and ended:
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
            number += ended
        if parts:
            yield from self._finish(parts, begins, path, first)

    def _finish(self, parts, begins, path, line):
        text = self._check(b"".join(parts), path, line)
        text = text if self._keep else text.strip()
        if text:
            yield Document(text, begins)

    def _json_lines(self, stream, path):
        for line, number in self._lines(stream, path):
            if line and not line.isspace():
                line = self._json_object(self._check(line, path, number).decode(), path, number)
                text = self._field_text(line, self._field, path, number)
                yield from self._cut_document(text, path, number)

    def _table(self, stream, path, separator):
        lines = (self._check(line, path, number).decode() for line, number in self._lines(stream, path))
        for text, number in read_delimited(lines, separator, self._field, path):
            yield from self._cut_document(self._clean(text), path, number)

    def _parquet(self, file):
        for text, number, fraction in read_parquet(file.path, self._field):
            self._within = lambda done=int(fraction * file.bytes): done
            yield from self._cut_document(self._clean(text), file.path, number)

    def _lines(self, stream, path):
        """The lines with their numbers."""
        for number, line in enumerate(iter(functools.partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise DataError(
                    f"{self._place(path, number)}: a line longer than {MAX_LINE_BYTES >> 20} MiB; one document a line"
                )
            yield line, number

    def _place(self, path, line):
        """A file and a line of what is read of it, for messages: the number from the beginning of the file."""
        if self._start:
            with open_file(path) as file:
                blocks = iter(lambda: file.read(min(_READ_LIMIT, self._start - file.tell())), b"")
                line += sum(block.count(b"\n") for block in blocks)
        return f"{path}:{line}"

    def _cut_document(self, text, path, number):
        begins, cut = True, _cut_before_space if self._keep else _cut
        while len(text) > self._bound:
            head, text = cut(text, self._bound)
            yield from self._finish([head], begins, path, number)
            begins = False
        yield from self._finish([text], begins, path, number)

    def _json_object(self, line, path, number):
        try:
            value = json.loads(line)  # not `parse_json`, which refuses values such as NaN in other fields
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self._place(path, number)}: not a JSON object on one line ({getattr(error, 'msg', error)})"
            ) from None
        if not isinstance(value, dict):
            raise DataError(f'{self._place(path, number)}: the line is not a JSON object like {{"{self._field}": ...}}')
        return value

    def _field_text(self, value, field, path, number, advice=_NAME_THE_FIELD):
        key = find_name(field, value)
        if key is None:
            raise DataError(f"{self._place(path, number)}: no field '{field}'{nearest(field, value)}; ", *advice)
        text = value[key]
        if not isinstance(text, str):
            raise DataError(f"{self._place(path, number)}: the field '{field}' is {type(text).__name__}, not a string")
        try:
            data = text.encode()
        except UnicodeEncodeError:  # an unpaired surrogate, written as an escape
            if self._errors == "strict":
                raise DataError(
                    f"{self._place(path, number)}: '{field}' holds half a surrogate pair; fix it, or ", *_REPLACE
                ) from None
            data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            self.replaced += data.count(b"\xef\xbf\xbd") - text.count("\ufffd")
        return self._clean(data)

    def _clean(self, text):
        """A text, str or bytes of UTF-8, as bytes; with "\n" line ends and stripped unless it is kept."""
        text = text.encode() if isinstance(text, str) else text
        return text if self._keep else text.replace(b"\r\n", b"\n").strip()

    def _check(self, data, path, line):
        """`data` if it is UTF-8; else DataError, or, with `errors` "replace", `data` with U+FFFD."""
        try:
            data.decode()
            return data
        except UnicodeDecodeError as error:
            if self._errors == "replace":
                replaced = data.decode("utf-8", "replace").encode()
                self.replaced += replaced.count(b"\xef\xbf\xbd") - data.count(b"\xef\xbf\xbd")
                return replaced
            line += data.count(b"\n", 0, error.start)
            is_gzip = kind_of(path)[1]
            advice = conversion_advice(str(path)[: -len(".gz")] if is_gzip else path, data)
            unpack = "; unpack it" if is_gzip else ""
            raise DataError(
                f"{self._place(path, line)}: byte 0x{data[error.start]:02x} is not UTF-8{unpack}; {advice}; or ",
                *_REPLACE,
            ) from None


class _Unpacked(gzip.GzipFile):
    """A .gz file that does not unpack without end."""

    def __init__(self, raw, file):
        super().__init__(fileobj=raw)
        self._path, self._most = file.path, max(_MOST_UNPACKED * file.bytes, _ALWAYS_UNPACKED)

    def _check(self, data):
        if self.tell() > self._most:
            raise DataError(
                f"{self._path} unpacks to over {self._most >> 20:,} MiB, {_MOST_UNPACKED} times its size or more, which no text "
                "does; unpack it and look at it, or leave it out"
            )
        return data

    def read(self, size=-1):
        return self._check(super().read(size))

    def readline(self, size=-1):
        return self._check(super().readline(size))


def _cut(text, bound):
    """Cuts `text`, which is longer than `bound`, into a head of at most `bound` bytes and the rest."""
    for mark in (b"\n", b" "):
        at = text.rfind(mark, 1, bound + 1)
        if at > 0:
            return text[:at], text[at + 1 :]
    return _cut_at_character(text, bound)


def _cut_before_space(text, bound):
    """The same, without loss: before white space after a word, where tokenizers cut the whole text, too."""
    for at in range(bound, max(bound - _SEARCHED, 0), -1):
        if text[at : at + 1].isspace() and not text[at - 1 : at].isspace():
            return text[:at], text[at:]
    return _cut_at_character(text, bound)


def _cut_at_character(text, bound):
    at = bound
    while at > max(bound - 3, 1) and text[at] & 0xC0 == 0x80:  # never within a character
        at -= 1
    return text[:at], text[at:]


def read_texts(inputs, text_field="text", errors="strict"):
    """Yields the texts of a corpus (str), one document at a time, for example to train a vocabulary.

    Args and errors: as `find_files` and `CorpusReader`.

    Example:
        import pathlib
        from tfrecords import read_texts

        pathlib.Path("corpus.txt").write_text("One document.\\n\\nAnother one.")
        print(list(read_texts("corpus.txt")))  # ['One document.', 'Another one.']
    """
    for document in CorpusReader(find_files(inputs), text_field, errors):
        yield document.text.decode("utf-8")
