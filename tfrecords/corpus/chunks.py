"""The corpus cut into units that are read in parallel, and these into chunks, each of which becomes a shard.

Units are a function of the names and sizes of the files. So the place of a chunk, the number of its unit and its number
in the unit, depends neither on who reads it nor on what is read before.
"""

import hashlib
import itertools
from collections import deque
from typing import NamedTuple

from tfrecords.corpus.documents import CorpusReader, Part
from tfrecords.corpus.files import kind_of
from tfrecords.corpus.text_pairs import TextPairReader

# Kinds whose meaning depends on what stands before, in a header or a quotation.
_TABLES = (".tsv", ".csv", ".parquet")


class Unit(NamedTuple):
    """What one worker reads: its number from 0, and its `Part`s of the corpus, a list."""

    number: int
    parts: list


class Chunk(NamedTuple):
    """The documents of one shard.

    Attributes:
        place: the number of the unit and the number in it, each from 0.
        documents: list of bytes, the texts.
        begins: list of bool, False at the later parts of a document that was cut.
        replaced: how many U+FFFD were put into these texts.
        sha256: hex checksum of the texts and their borders.
        size: bytes on disk that were read for it.
    """

    place: tuple
    documents: list
    begins: list
    replaced: int
    sha256: str
    size: int

    @property
    def begun(self):
        """How many documents begin here; one that was cut is counted once."""
        return sum(self.begins)

    @property
    def text_bytes(self):
        return sum(map(len, self.documents))


def corpus_reader(files, config, max_document_bytes=1 << 20):
    """The reader of the documents of a corpus, with the settings of a `CorpusConfig`."""
    if config.text_pairs:
        return TextPairReader(files, errors=config.errors, max_document_bytes=max_document_bytes)
    options = {"one_document_a_line": config.one_document_a_line, "keep_text": config.keep_text}
    return CorpusReader(files, config.text_field, config.errors, max_document_bytes, **options)


def cut(files, config):
    """The `Unit`s of a corpus: about `config.shard_bytes` (of a `CorpusConfig`) on disk each.

    A larger plain file is cut into equal parts; tables and compressed files are not cut. Consecutive small files, and
    what is left at the end, belong to one unit, so that every chunk has documents to draw random sentences from.

    Args:
        files: from `files.find_files`.
        config: a `CorpusConfig`.
    """
    size, least = config.shard_bytes, 3 * config.shard_bytes // 4
    units, waiting, waiting_bytes = [], [], 0
    for file in files:
        kind, is_gzip = kind_of(file.path)
        is_one_chunk = is_gzip or kind in (_TABLES if not config.text_pairs else _TABLES[1:])
        count = 1 if is_one_chunk else max(1, round(file.bytes / size))
        ends = [file.bytes * number // count for number in range(count + 1)]
        for start, end in itertools.pairwise(ends):
            waiting.append(Part(file) if count == 1 else Part(file, start, end))
            waiting_bytes += end - start
            if waiting_bytes >= least:
                units.append(waiting)
                waiting, waiting_bytes = [], 0
    if waiting and units:
        units[-1] += waiting
    elif waiting:
        units.append(waiting)
    return [Unit(number, parts) for number, parts in enumerate(units)]


def read_chunks(unit, config):
    """Yields the `Chunk`s of a `Unit`, of about `config.shard_bytes` (of a `CorpusConfig`) of text.

    A chunk ends with the document that reaches the size; the last one has between half and one
    and a half times the size.
    """
    reader = corpus_reader(unit.parts, config, config.shard_bytes // 4)
    waiting, size, number, before = deque(), 0, 0, (0, 0)
    for document in reader:
        waiting.append(document)
        size += len(document.text)
        if 2 * size >= 3 * config.shard_bytes:
            texts, texts_size = [], 0
            while texts_size < config.shard_bytes:
                texts.append(waiting.popleft())
                texts_size += len(texts[-1].text)
            yield _chunk((unit.number, number), texts, reader, before)
            size, number, before = size - texts_size, number + 1, (reader.replaced, reader.position)
    if waiting:
        yield _chunk((unit.number, number), waiting, reader, before)


def _chunk(place, documents, reader, before):
    texts = [document.text for document in documents]
    digest = hashlib.sha256()
    for text in texts:
        digest.update(b"%d\n" % len(text))
        digest.update(text)
    begins = [document.begins for document in documents]
    return Chunk(place, texts, begins, reader.replaced - before[0], digest.hexdigest(), reader.position - before[1])
