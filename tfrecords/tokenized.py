"""A corpus kept as token ids, from which any format is packed without tokenizing again.

A folder of it holds tokens.json, the tokenizer, and one file for each chunk of the corpus, which
becomes one shard: tokens-00000.npz with the ids of all sentences (uint16 where the vocabulary
allows), the length of each sentence in tokens and of each document in sentences.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers import load_tokenizer
from tfrecords.output_folder import Kind
from tfrecords.results import ChunkResult
from tfrecords.schema import TOKENIZER_FOLDER, TOKENS_MANIFEST_NAME
from tfrecords.statistics import DuplicateSample, sentence_hashes
from tfrecords.tokens import DocumentTokenizer, decode, encode, token_counts

_VERSION = 1


@dataclass(frozen=True)
class TokenFile:
    """One file of the folder, and the chunk of the corpus that it holds.

    Attributes:
        file, bytes, sha256: its name, size and checksum.
        documents, text_bytes, replaced_characters: of the chunk, see `chunks.Chunk`.
        text_sha256: the checksum of the chunk's text.
    """

    file: str
    bytes: int
    sha256: str
    documents: int
    text_bytes: int
    replaced_characters: int
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
    """

    tokenizer_fingerprint: str
    vocabulary_size: int
    reading: dict
    counts: dict
    corpus: list[dict] = field(repr=False)
    files: list[TokenFile] = field(repr=False)
    version: int = _VERSION

    @property
    def settings(self):
        """All that decides what the files of a corpus hold, as a dict that JSON can hold."""
        return self.reading | {"tokenizer": self.tokenizer_fingerprint, "version": self.version}

    @classmethod
    def load(cls, folder):
        """Reads `folder`/tokens.json.

        Raises:
            DataError: it is missing, not readable, or of another version.
        """
        path = Path(folder) / TOKENS_MANIFEST_NAME
        again = "tokenize the corpus again"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values["version"] != _VERSION:
                raise DataError(f"{path} has version {values['version']}, this library reads {_VERSION}; {again}")
            values["files"] = [TokenFile(**file) for file in values["files"]]
            return cls(**values)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is not of a tokenized corpus that this library wrote ({error}); {again}") from None

    def save(self, folder):
        """Writes `folder`/tokens.json, atomically."""
        with atomic_write(Path(folder) / TOKENS_MANIFEST_NAME) as file:
            json.dump(dataclasses.asdict(self), file, indent=1, sort_keys=True, ensure_ascii=False)
            file.write("\n")

    def chunks(self, folder):
        """Yields a `StoredChunk` for each file, as `chunks.read_chunks` yields them for the text."""
        position = 0
        for index, file in enumerate(self.files):
            position += file.text_bytes
            yield StoredChunk(index, Path(folder) / file.file, file, position)


class StoredChunk(NamedTuple):
    """A chunk whose tokens are kept in a file; has what `chunks.Chunk` has, but for the documents."""

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
                "copy it anew or tokenize the corpus again"
            )
        return decode(data)


TOKENS = Kind("token files", TokenizedCorpus, TOKENS_MANIFEST_NAME, TokenFile, "tokens", ".npz")


class TokenWriter:
    """Turns chunks into token files; one lives in each process, and all threads there may call it.

    Args:
        folder: the output folder; it holds the tokenizer.
        sentences: how to find sentences, as `sentences.document_sentences` takes it.
        tokenizer: that tokenizer, where it is loaded already.
    """

    def __init__(self, folder, sentences, tokenizer=None):
        self._folder = Path(folder)
        self._tokenizer = load_tokenizer(self._folder / TOKENIZER_FOLDER) if tokenizer is None else tokenizer
        self._tokenize = DocumentTokenizer(self._tokenizer, sentences)

    def __call__(self, work):
        """Writes file and sidecar of one chunk: (`Chunk`, threshold) -> `ChunkResult`.

        Raises:
            RunDirectoryError: the disk is full or the folder cannot be written.
        """
        chunk, threshold = work
        tokens = chunk.tokens(self._tokenize)
        data = encode(tokens, self._tokenizer.vocabulary_size)
        name = TOKENS.file_name(chunk.index)
        with atomic_write(self._folder / name, "wb") as file:
            file.write(data)
        entry = TokenFile(
            file=name,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            documents=chunk.begun,
            text_bytes=chunk.text_bytes,
            replaced_characters=chunk.replaced,
            text_sha256=chunk.sha256,
        )
        duplicates = DuplicateSample(sentence_hashes(tokens.token_ids, tokens.sentence_splits), threshold)
        result = ChunkResult(chunk.sha256, entry, token_counts(chunk, tokens, self._tokenizer), duplicates)
        result.save(self._folder)
        return result
