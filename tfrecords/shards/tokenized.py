"""A corpus kept as token ids, from which any format is packed without tokenizing again.

Its folder holds tokens.json, the tokenizer, and one file for each chunk of the corpus, which
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
    """One file of the folder, and its chunk of the corpus (see `corpus.chunks.Chunk`)."""

    file: str
    bytes: Size
    sha256: str
    documents: Size
    text_bytes: Size
    replaced_characters: Size
    text_sha256: str


@dataclass(frozen=True)
class TokenizedCorpus:
    """The contents of tokens.json, which `tokenize_corpus` writes.

    Attributes:
        tokenizer_fingerprint, vocabulary_size: of the tokenizer that made the ids.
        reading: the settings (`CorpusConfig`) that decided them, as a dict.
        counts: documents, sentences, tokens, ... and rates.
        corpus: the inputs, a list of {"file", "bytes"}.
        files: in order, a list of `TokenFile`.
        version: of the files.

    Raises:
        ConfigError: a value that no tokenized corpus has.

    Example:
        import pathlib
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import TokenizedCorpus, tokenize_corpus

        pathlib.Path("corpus.txt").write_text("the cat sat .")
        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
        tokenize_corpus("corpus.txt", "tokens", tokenizer)
        print(TokenizedCorpus.load("tokens").counts["tokens"])  # 4
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
        """Everything that decides what the files hold, except the corpus: a dict ready for JSON."""
        return self.reading | {"tokenizer": self.tokenizer_fingerprint, "version": self.version}

    @classmethod
    def load(cls, folder):
        """Reads `folder`/tokens.json; DataError if it is missing, not readable, of another version, or was edited."""
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
            counts = file.documents, file.text_bytes, file.replaced_characters
            yield StoredChunk(index, *counts, file.text_sha256, position, Path(folder) / file.file, file.sha256)


class StoredChunk(NamedTuple):
    """A chunk whose tokens are stored in the file `path`; used as a `corpus.chunks.Chunk`."""

    index: int
    begun: int
    text_bytes: int
    replaced: int
    sha256: str
    position: int
    path: Path
    file_sha256: str

    def tokens(self, tokenize):
        """The `Tokens` in the file; DataError if it is missing or damaged. `tokenize` is not used."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror or error}") from None
        if hashlib.sha256(data).hexdigest() != self.file_sha256:
            raise DataError(
                f"{self.path} is damaged: its checksum is not that in {TOKENS_MANIFEST_NAME}; "
                "copy it again or tokenize the corpus again"
            )
        return decode(data)
