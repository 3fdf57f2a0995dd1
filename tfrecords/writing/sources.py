"""What shards are made of: files of text, or a folder of their token ids."""

import dataclasses
from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.remote import local_copy
from tfrecords.corpus.chunks import corpus_reader, read_chunks
from tfrecords.corpus.files import find_files
from tfrecords.shards.config import CorpusConfig, ShardsConfig
from tfrecords.shards.schema import TOKENS_MANIFEST_NAME
from tfrecords.shards.tokenized import TokenizedCorpus


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


@dataclasses.dataclass(frozen=True)
class TokenSource:
    """A folder that `tokenize_corpus` wrote, and its `TokenizedCorpus`."""

    folder: Path
    tokens: TokenizedCorpus

    @classmethod
    def of(cls, inputs):
        """The folder of token ids that `inputs` (a list of paths) name alone; None if they name text."""
        paths = [Path(local_copy(path)) for path in inputs]
        folders = [path for path in paths if (path / TOKENS_MANIFEST_NAME).is_file()]
        if folders and len(paths) > 1:
            raise ConfigError(f"{folders[0]} is a tokenized corpus, which is read alone; remove the other inputs")
        return cls(folders[0], TokenizedCorpus.load(folders[0])) if folders else None

    @property
    def corpus(self):
        """The inputs as a manifest lists them."""
        return self.tokens.corpus

    @property
    def bytes(self):
        return sum(file.text_bytes for file in self.tokens.files)

    def chunks(self):
        """Yields a `StoredChunk` for each file to write."""
        return self.tokens.chunks(self.folder)

    def check_tokenizer(self, tokenizer):
        """Raises ConfigError if the token ids are not those of `tokenizer`."""
        there, here = self.tokens.tokenizer_fingerprint, tokenizer.fingerprint
        if there != here:
            raise ConfigError(
                f"{self.folder} was tokenized with another tokenizer: fingerprint {there[:12]} there, {here[:12]} here; "
                "leave the tokenizer out, or tokenize the corpus again"
            )

    def adopt(self, config):
        """`config` (`ShardsConfig`) with the settings of the tokenized corpus; ConfigError for one set otherwise."""
        if config.text_pairs:
            raise ConfigError(
                f"{self.folder} is a tokenized corpus, and text_pairs are read from text; name .tsv or .jsonl files"
            )
        for name, value in self.tokens.reading.items():
            if getattr(config, name) not in (value, getattr(ShardsConfig, name)):
                raise ConfigError(
                    f"'{name}' is {getattr(config, name)!r}, but {self.folder} was tokenized with {value!r}; "
                    "leave it out, or tokenize the corpus again"
                )
        return dataclasses.replace(config, **self.tokens.reading)

    def empty(self):
        return DataError(f"{self.folder} holds no tokens; tokenize the corpus again")
