"""A corpus kept as token ids, from which any format is packed without tokenizing again.

A folder of it holds tokens.json, the tokenizer, and one file for each chunk of the corpus, which
becomes one shard: tokens-00000.npz with the ids of all sentences (uint16 where the vocabulary
allows), the length of each sentence in tokens and of each document in sentences.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

from bert_tf.config import Range, build, to_dict
from bert_tf.errors import DataError
from tfrecords.corpus.tokens import decode
from tfrecords.shards.checked_record import load_record, save_record
from tfrecords.shards.config import CorpusConfig
from tfrecords.shards.manifest import Size, check_names
from tfrecords.shards.schema import TOKENS_MANIFEST_NAME

_VERSION = 1


@dataclass(frozen=True)
class TokenFile:
    """One file of the folder, and the chunk of the corpus that it holds.

    Attributes:
        file, bytes, sha256: its name, size and checksum.
        documents, text_bytes, replaced_characters: of the chunk, see `corpus.chunks.Chunk`.
        text_sha256: the checksum of the chunk's text.
    """

    file: str
    bytes: Size
    sha256: str
    documents: Size
    text_bytes: Size
    replaced_characters: Size
    text_sha256: str


@dataclass(frozen=True)
class TokenizedCorpus:
    """The contents of tokens.json.

    Attributes:
        tokenizer_fingerprint, vocabulary_size: of the tokenizer that made the ids.
        reading: the settings (`CorpusConfig`) that decided them, as a dict.
        counts: documents, sentences, tokens, ... and rates.
        corpus: the inputs, a list of {"file", "bytes"}.
        files: in order, a list of `TokenFile`.
        version: of the files.

    Raises:
        ConfigError: a value that no tokenized corpus has.
    """

    tokenizer_fingerprint: str
    vocabulary_size: Annotated[int, Range(at_least=0, at_most=(1 << 31) - 1)]
    reading: dict
    counts: dict[str, int | float | bool]
    corpus: list[dict[str, str | int]] = field(repr=False)
    files: list[TokenFile] = field(repr=False)
    version: int = _VERSION

    def __post_init__(self):
        check_names(self.files, "files")
        # With the defaults of settings that are younger than the folder.
        object.__setattr__(self, "reading", to_dict(build(CorpusConfig, self.reading, "reading")))

    @property
    def settings(self):
        """All that decides what the files of a corpus hold, as a dict that JSON can hold."""
        return self.reading | {"tokenizer": self.tokenizer_fingerprint, "version": self.version}

    @classmethod
    def load(cls, folder):
        """Reads `folder`/tokens.json.

        Raises:
            DataError: it is missing, not readable, of another version, or was edited.
        """
        path = Path(folder) / TOKENS_MANIFEST_NAME
        return load_record(cls, path, "version", _VERSION, "tokenize the corpus again")

    def save(self, folder):
        """Writes `folder`/tokens.json, atomically."""
        save_record(self, Path(folder) / TOKENS_MANIFEST_NAME)

    def chunks(self, folder):
        """Yields a `StoredChunk` for each file, as `corpus.chunks.read_chunks` yields them for the text."""
        position = 0
        for index, file in enumerate(self.files):
            position += file.text_bytes
            yield StoredChunk(index, Path(folder) / file.file, file, position)


class StoredChunk(NamedTuple):
    """A chunk whose tokens are kept in a file; has what `corpus.chunks.Chunk` has, but for the documents."""

    index: int
    path: Path
    file: TokenFile
    position: int

    @property
    def begun(self):
        return self.file.documents

    @property
    def text_bytes(self):
        return self.file.text_bytes

    @property
    def replaced(self):
        return self.file.replaced_characters

    @property
    def sha256(self):
        return self.file.text_sha256

    def tokens(self, tokenize):
        """The `Tokens` in the file; nothing is tokenized.

        Raises:
            DataError: the file is missing or not as it was written.
        """
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror or error}") from None
        if hashlib.sha256(data).hexdigest() != self.file.sha256:
            raise DataError(
                f"{self.path} is damaged: its checksum is not that in {TOKENS_MANIFEST_NAME}; "
                "copy it again or tokenize the corpus again"
            )
        return decode(data)
