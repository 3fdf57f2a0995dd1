"""Pairs of texts, sources and targets, out of files of two columns: .tsv and .jsonl, each also gzipped."""

from bert_tf.errors import DataError
from tfrecords.corpus.documents import LINES, CorpusReader, Document

#: Between source and target in the text of a `Document`; no text may hold it.
BETWEEN = "\0"
_COLUMNS = ("source", "target")
_ADVICE = 'a line is {"source": ..., "target": ...}'


class TextPairReader(CorpusReader):
    """Iterates over the pairs of files, once; each is a `Document` of the source, `BETWEEN` and the target.

    In .tsv each line is source, tabulator, target; a first line "source<TAB>target" is a header. In .jsonl each line
    is an object with the fields "source" and "target". White space at the ends is dropped, empty lines are left out.

    Args and attributes: as `CorpusReader`, of which those of plain text do not apply.

    Raises, while iterating:
        DataError: another number of columns, an empty source or target, another kind of file, or as `CorpusReader`;
            with file and line (from 1).
    """

    def _documents(self, stream, path, kind):
        if kind not in (".tsv", *LINES):
            raise _another_kind(path)
        for line, number in self._lines(stream, path):
            line = self._check(line, path, number)
            if not line.strip():
                continue
            pair = self._of_json(line, path, number) if kind != ".tsv" else self._of_table(line, path, number)
            if (
                number == 1
                and not self._start
                and kind == ".tsv"
                and tuple(text.decode().lower() for text in pair) == _COLUMNS
            ):
                continue
            for name, text in zip(_COLUMNS, pair):
                if not text:
                    raise DataError(f"{self._place(path, number)}: the {name} is empty; remove the line")
                if BETWEEN.encode() in text:
                    raise DataError(f"{self._place(path, number)}: the {name} holds the character U+0000; remove it")
            yield Document(BETWEEN.encode().join(pair), True)

    def _of_json(self, line, path, number):
        values = self._json_object(line.decode(), path, number)
        return [self._field_text(values, name, path, number, _ADVICE) for name in _COLUMNS]

    def _of_table(self, line, path, number):
        pair = line.rstrip(b"\r\n").split(b"\t")
        if len(pair) != 2:
            columns = f"{len(pair)} column{'s' * (len(pair) != 1)}"
            raise DataError(
                f"{self._place(path, number)}: {columns} instead of 2; a line is the source, a tab and the target"
            )
        return [self._clean(text) for text in pair]

    def _parquet(self, file):
        raise _another_kind(file.path)


def _another_kind(path):
    return DataError(
        f"{path}: text_pairs are read from .tsv (source<TAB>target) and .jsonl (fields source and target), "
        "each also gzipped; write the pairs in one of them"
    )
