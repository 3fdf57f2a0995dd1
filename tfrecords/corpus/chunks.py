"""The corpus cut into chunks, the units of work: consecutive documents that become one shard."""

import hashlib
from collections import deque
from typing import NamedTuple

from tfrecords.corpus.documents import CorpusReader
from tfrecords.corpus.text_pairs import TextPairReader


class Chunk(NamedTuple):
    """One unit of work.

    Attributes:
        index: its number, from 0, which is its shard's.
        documents: list of bytes, the texts.
        begins: list of bool, False at the later parts of a document that was cut.
        replaced: how many U+FFFD were put into these texts.
        sha256: hex checksum of the texts and their borders.
        position: bytes of the corpus on disk read up to its end.
    """

    index: int
    documents: list
    begins: list
    replaced: int
    sha256: str
    position: int

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


def read_chunks(files, config):
    """Yields `Chunk`s of about `config.shard_bytes` (of a `CorpusConfig`) of text, across the borders of files.

    A chunk ends with the document that reaches the size; the last one has between half and one
    and a half times the size, so that it also has documents to draw random sentences from.
    """
    reader = corpus_reader(files, config, config.shard_bytes // 4)
    waiting, size, index, replaced = deque(), 0, 0, 0
    for document in reader:
        waiting.append(document)
        size += len(document.text)
        if 2 * size >= 3 * config.shard_bytes:
            taken, taken_size = [], 0
            while taken_size < config.shard_bytes:
                taken.append(waiting.popleft())
                taken_size += len(taken[-1].text)
            yield _chunk(index, taken, reader, replaced)
            size, index, replaced = size - taken_size, index + 1, reader.replaced
    if waiting:
        yield _chunk(index, waiting, reader, replaced)


def _chunk(index, documents, reader, replaced_before):
    texts = [document.text for document in documents]
    digest = hashlib.sha256()
    for text in texts:
        digest.update(b"%d\n" % len(text))
        digest.update(text)
    begins = [document.begins for document in documents]
    return Chunk(index, texts, begins, reader.replaced - replaced_before, digest.hexdigest(), reader.position)
