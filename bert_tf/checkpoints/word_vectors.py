"""Files of word vectors: word2vec's text and binary formats, GloVe's text, fastText's .vec.

| format | first line | each word |
|---|---|---|
| "word2vec", and fastText's .vec | number of words, size | a line of text: the word and its numbers |
| "word2vec_binary" | number of words, size | the word, a space, its numbers as float32, often a line end |
| "glove" | none | a line of text: the word and its numbers |
"""

import codecs
import mmap
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints.arrays import ArraysInMemory
from bert_tf.checkpoints.formats import VECTOR_FILES
from bert_tf.checkpoints.source import Source
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write, explain_reading
from bert_tf.models.weights import WeightMap
from bert_tf.models.word_vectors.config import WordVectorsConfig
from bert_tf.parsing import brief
from bert_tf.tokenizers import whole_word_tokenizer
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.tokenizers.wordpiece.whole_words import SPECIAL_TOKENS
from bert_tf.types import StrPath

WEIGHTS = WeightMap(arrays={"vectors": "embeddings/token_embeddings"})

_LONGEST_WORD = 1 << 12  # bytes
_LONGEST_LINE = 1 << 24
_GZIP = b"\x1f\x8b"


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a file of vectors, the special tokens first.

    The tokenizer lowercases if no word has a capital letter, and then drops accents if no word has one. A special token
    that is not in the file, such as "[PAD]", has a vector of zeros.

    Raises:
        DataError: as `read_vectors`; also a word that no vocabulary can hold.
    """
    words, vectors = read_vectors(path)
    ids = {word: i for i, word in enumerate(words)}
    special = np.zeros((len(SPECIAL_TOKENS), vectors.shape[1]), np.float32)
    for row, token in enumerate(SPECIAL_TOKENS):
        if token in ids:
            special[row] = vectors[ids[token]]
    rows = [i for word, i in ids.items() if word not in SPECIAL_TOKENS]
    table = np.concatenate([special, vectors if len(rows) == len(words) else vectors[rows]])
    lowercase = all(word == word.lower() for word in words)
    accents = any(
        unicodedata.combining(c) for word in words for c in unicodedata.normalize("NFD", word) if not word.isascii()
    )
    try:
        tokenizer = whole_word_tokenizer([words[i] for i in rows], lowercase, strip_accents=lowercase and not accents)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    config, arrays = WordVectorsConfig(*table.shape), ArraysInMemory({"vectors": table})
    return Source(path, "word2vec", "word_vectors", config, arrays, WEIGHTS, read_tokenizer=lambda _: tokenizer)


def read_vectors(path: StrPath) -> tuple[list[str], np.ndarray]:
    """The words and vectors of a file, whose format is recognized.

    Args:
        path: the file.

    Returns:
        (list of str, float32 [V, D]).

    Raises:
        DataError: the file is empty, truncated or in another format; a line has a wrong number of fields; a word
            stands twice or is not UTF-8; a field is not a finite number. Names the file, and the line or the word's
            number.
    """
    with explain_reading(path), open(path, "rb") as file:
        first = file.readline(_LONGEST_LINE).removeprefix(codecs.BOM_UTF8)
        if first.startswith(_GZIP):
            raise DataError(f"{path} is compressed with gzip; unpack it first")
        header, rest = _header(first), file.readline(_LONGEST_LINE)
        if header is None:
            fields = len(first.split()) - 1
            if fields < 1 or b"\0" in first:
                raise DataError(f"{path} holds no word vectors: its first line is {brief(first[:100])}")
            return _read_text(path, None, fields)
        count, size = header
        if not 1 <= count < 2**31 or not 1 <= size <= 65_536:
            raise DataError(f"{path}, line 1: {count:,} words with {size:,} numbers each cannot be right")
        if _numbers(rest, size) is not None:
            return _read_text(path, count, size)
    return _read_binary(path, count, size, len(first))


def _header(line):
    """(words, size) of a first line of two whole numbers; None for another line."""
    fields = line.split()
    if len(fields) != 2 or not all(re.fullmatch(rb"-?\d+", field) for field in fields):
        return None
    return tuple(int(field[:20]) for field in fields)  # longer ones are out of range in any case


def _numbers(line, size):
    """(word, the numbers) of a line of text; None if it is not such a line."""
    fields = line.rstrip().rsplit(b" ", size)
    if len(fields) != size + 1:
        return None
    try:
        return fields[0].decode("utf-8"), np.array(fields[1:], np.bytes_).astype(np.float32)
    except (UnicodeDecodeError, ValueError):
        return None


def _read_text(path, count, size):
    """The vectors of a text file. `count` is the number of words that its header states; None without a header."""
    words: dict[str, int] = {}
    rows = []
    with open(path, "rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        if count is not None:
            file.readline()
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1 if count is None else 2):
            parsed = _numbers(line, size)
            if parsed is None:
                raise DataError(f"{path}, line {number}: {_problem(line, size)}")
            word, vector = parsed
            if not np.isfinite(vector).all():
                raise DataError(f"{path}, line {number}: the vector of {brief(word)} has a number that is not finite")
            if words.setdefault(word, number) != number:
                raise DataError(f"{path}, line {number}: {brief(word)} stands twice, first in line {words[word]}")
            rows.append(vector)
    if count not in (None, len(rows)):
        raise DataError(f"{path}, line 1, promises {count:,} words, but {len(rows):,} follow; the file is damaged")
    return list(words), np.stack(rows)


def _problem(line, size):
    """What is wrong with a line that is not a word with `size` numbers."""
    fields = line.split()
    if len(fields) != size + 1:
        return f"{max(len(fields) - 1, 0)} numbers after the word, but the first line says {size}"
    for field in fields[1:]:
        try:
            float(field)
        except ValueError:
            return f"{brief(field.decode('utf-8', 'replace'))} is not a number"
    return "the word is not UTF-8"


def _read_binary(path, count, size, position):
    words: dict[str, int] = {}
    width, bytes_there = 4 * size, Path(path).stat().st_size
    if bytes_there < position + count * (width + 1):
        raise DataError(
            f"{path} is truncated or damaged: {count:,} words with {size} float32 numbers do not fit into {bytes_there:,} bytes"
        )
    vectors = np.empty((count, size), np.float32)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for number in range(count):
            where = f"{path}, word {number + 1:,} of {count:,} (byte {position:,})"
            space = data.find(b" ", position, position + _LONGEST_WORD)
            end = space + 1 + width
            if space < 0 or end > bytes_there:
                raise DataError(f"{where}: the file ends, or there is no word; it is truncated or damaged")
            try:
                word = data[position:space].lstrip(b"\n").decode("utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{where} is not UTF-8; the file is damaged") from None
            vectors[number] = np.frombuffer(data, "<f4", size, space + 1)
            if not np.isfinite(vectors[number]).all():
                raise DataError(f"{where}: the vector of {brief(word)} has a number that is not finite")
            if words.setdefault(word, number) != number:
                raise DataError(f"{where}: {brief(word)} stands twice, first as word {words[word] + 1:,}")
            position = end
        if data[position:].strip():
            raise DataError(f"{path} has {bytes_there - position:,} bytes after the last of its {count:,} words")
    return list(words), vectors


def write_vectors(path: StrPath, words: Iterable[str], vectors: np.ndarray, format: str) -> None:
    """Writes vectors to one file, completely or not at all.

    Args:
        path: a file that does not exist yet.
        words: iterable of str.
        vectors: float32 [V, D].
        format: one of `VECTOR_FILES`. fastText's .vec is "word2vec". Text has 9 digits, so that float32 is read back exactly.

    Raises:
        ConfigError: an unknown format.
        DataError: a word that the format cannot hold.
        RunDirectoryError: the file exists, or cannot be written.
    """
    if format not in VECTOR_FILES:
        raise ConfigError(f"there is no format '{format}' of word vectors; known: {', '.join(VECTOR_FILES)}")
    with atomic_write(path, "wb", replace=False) as file:
        if format != "glove":
            file.write(b"%d %d\n" % vectors.shape)
        for word, vector in zip(words, np.asarray(vectors, "<f4"), strict=True):
            if not word or any(c.isspace() for c in word):
                raise DataError(f"{brief(word)} cannot be written as {format}: words are separated by spaces there")
            binary = format == "word2vec_binary"
            numbers = vector.tobytes() if binary else " ".join(f"{x:.9g}" for x in vector).encode()
            file.write(word.encode("utf-8") + b" " + numbers + b"\n")


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath, format: str) -> None:
    """Writes the token table of a model, one row for each token; special tokens are left out.

    Args:
        model: an encoder, or an objective around one.
        tokenizer: names the rows.
        path, format: as for `write_vectors`.

    Raises:
        ConfigError: the tokenizer is None.
        DataError, RunDirectoryError: as `write_vectors`.
    """
    if tokenizer is None:
        raise ConfigError(
            f"format {format} holds words, and no tokenizer was given that names them; give the tokenizer"
        )
    encoder = next(iter(model.backbones().values()))
    special = set(tokenizer.special_tokens)
    ids = [i for i, token in enumerate(tokenizer.vocabulary) if token not in special]
    write_vectors(path, [tokenizer.vocabulary[i] for i in ids], np.asarray(encoder.embedding_table)[ids], format)
