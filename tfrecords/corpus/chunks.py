"""The corpus cut into chunks, the units of work: consecutive documents that become one shard."""

import hashlib
from collections import deque
from typing import NamedTuple

from tfrecords.corpus.documents import CorpusReader


class Chunk(NamedTuple):
    """One unit of work.

    Attributes:
        index: its number, from 0, which is its shard's.
        documents: list of bytes, the texts.
        begun: how many documents begin here; one that was cut is counted once.
        replaced: how many U+FFFD were put into these texts.
        sha256: hex checksum of the texts and their borders.
        position: bytes of the corpus on disk read up to its end.
    """

    index: int
    documents: list
    begun: int
    replaced: int
    sha256: str
    position: int

    @property
    def text_bytes(self):
        return sum(map(len, self.documents))

    def tokens(self, tokenize):
        """The `Tokens` of the documents; `tokenize` is a `tokens.DocumentTokenizer`."""
        return tokenize(self.documents)


def read_chunks(files, config):
    """Yields `Chunk`s of about `config.shard_bytes` (of a `CorpusConfig`) of text, across the borders of files.

    A chunk ends with the document that reaches the size; the last one has between half and one
    and a half times the size, so that it also has documents to draw random sentences from.
    """
    reader = CorpusReader(files, config.text_field, config.errors, config.shard_bytes // 4, config.one_document_a_line)
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
    begun = sum(document.begins for document in documents)
    return Chunk(index, texts, begun, reader.replaced - replaced_before, digest.hexdigest(), reader.position)
