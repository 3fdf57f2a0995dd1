"""Vocabularies and merges from disk: vocab.txt, vocab.json (or encoder.json), merges.txt (or vocab.bpe)."""

import codecs
from collections.abc import Mapping
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.parsing import brief
from bert_tf.types import StrPath


def read_vocabulary(path: StrPath) -> list[str]:
    """The tokens of a vocab.txt, one a line, in the order of their ids.

    Raises:
        DataError: an empty line, a token that stands twice, bytes that are not UTF-8; with the line's number.
    """
    first_line: dict[str, int] = {}
    for number, token in enumerate(_lines(path), 1):
        if not token:
            raise DataError(f"{path}, line {number}: empty; every line of a vocabulary is a token")
        if token in first_line:
            raise DataError(f"{path}, line {number}: '{token}' is already the token of line {first_line[token]}")
        first_line[token] = number
    if not first_line:
        raise DataError(f"{path} is empty; a vocabulary has one token a line")
    return list(first_line)


def read_merges(path: StrPath) -> list[tuple[str, str]]:
    """The pairs of a merges.txt, one a line, two tokens separated by a space.

    A first line that begins with "#version" is left out, and empty lines at the end.

    Raises:
        DataError: a line without two tokens, bytes that are not UTF-8; with the line's number.
    """
    lines = _lines(path)
    while lines and not lines[-1]:
        lines.pop()
    merges = []
    for number, line in enumerate(lines, 1):
        pair = line.split(" ")
        if number == 1 and (line.startswith("#version") or not line):
            continue
        if len(pair) != 2 or not all(pair):
            raise DataError(f"{path}, line {number}: {brief(line)} is not a pair of tokens")
        merges.append(tuple(pair))
    return merges


def _lines(path):
    """The lines of a file, without a byte order mark, as Windows editors write it.

    They end at line feeds alone: other line ends of Unicode may be part of a token.
    """
    with explain_reading(path):
        lines = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
    decoded = []
    for number, line in enumerate(lines if lines != [b""] else (), 1):
        try:
            decoded.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not valid UTF-8") from None
    return decoded


def tokens_by_id(ids: Mapping[str, int], where: StrPath) -> list[str]:
    """The keys of a mapping of token -> id in the order of the ids 0, 1, 2, ...

    Raises:
        DataError: another thing, or ids with a gap.
    """
    if not isinstance(ids, dict) or not ids or not all(type(i) is int for i in ids.values()):
        raise DataError(f"{where} must map tokens to ids, which are integers")
    token_of_id: dict[int, str] = {}
    for token, token_id in ids.items():
        if token_of_id.setdefault(token_id, token) != token:
            raise DataError(f"{where}: '{token_of_id[token_id]}' and '{token}' both have the id {token_id}")
    for token_id in range(len(token_of_id)):
        if token_id not in token_of_id:
            raise DataError(f"{where} has {len(token_of_id)} tokens, but none with the id {token_id}")
    return [token_of_id[i] for i in range(len(token_of_id))]
