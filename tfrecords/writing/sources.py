"""What shards are made of: files of text."""

import dataclasses

from bert_tf.errors import DataError
from tfrecords.corpus.chunks import corpus_reader, read_chunks
from tfrecords.corpus.files import find_files
from tfrecords.shards.config import CorpusConfig


@dataclasses.dataclass(frozen=True)
class TextSource:
    """Files of text (a list of `CorpusFile`), and the `CorpusConfig` they are read with."""

    files: list
    config: CorpusConfig

    @classmethod
    def of(cls, inputs, config):
        """The files that `inputs` name; DataError where there are none, or no text in them."""
        source = cls(find_files(inputs), config)
        if next(iter(corpus_reader(source.files, config)), None) is None:
            raise source.empty()
        return source

    @property
    def corpus(self):
        """The inputs as a manifest lists them."""
        return [{"file": file.name, "bytes": file.bytes} for file in self.files]

    @property
    def bytes(self):
        return sum(file.bytes for file in self.files)

    def chunks(self):
        """Yields a `Chunk` for each file to write."""
        return read_chunks(self.files, self.config)

    def empty(self):
        files = f"{len(self.files)} file{'s' * (len(self.files) != 1)}"
        return DataError(f"the corpus ({files}, {self.bytes:,} bytes) holds no text")
