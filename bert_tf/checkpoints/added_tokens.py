"""A model with further tokens: its tokenizer's vocabulary and the rows of its tables grow together."""

import dataclasses
import fnmatch
from collections.abc import Iterable, Iterator

import numpy as np

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.source import Source
from bert_tf.tokenizers.special_tokens import SpecialToken

#: The variables with a row for each token.
_TABLES = ("*token_embeddings", "*output_bias", "output/kernel", "output/bias")


def with_tokens(source: Source, tokens: Iterable[str | SpecialToken], special: bool = False) -> Source:
    """The source with further tokens in its tokenizer, and a row for each in its tables.

    A new row is the mean of the rows of the pieces that the token was cut into before, the best of the ways that Koto,
    Lau and Baldwin 2021 ("IndoBERTweet") compare; without a known piece, that of all rows.

    Args:
        source: of `open_source`.
        tokens, special: as of `Tokenizer.add_tokens`.
    """
    old = source.tokenizer
    new = old.add_tokens(tokens, special)
    pieces = []
    for token in new.vocabulary[old.vocabulary_size :]:
        ids = [i for i in old.encode(token) if i != old.unk_id]
        pieces.append(ids or list(range(old.vocabulary_size)))
    size = max(source.config.vocabulary_size, new.vocabulary_size)
    return dataclasses.replace(
        source,
        config=dataclasses.replace(source.config, vocabulary_size=size),
        generator=source.generator and dataclasses.replace(source.generator, vocabulary_size=size),
        arrays=_GrownArrays(source, old.vocabulary_size, pieces, size),
        read_tokenizer=lambda path: new,
    )


class _GrownArrays(NamedArrays):
    """The arrays of a source, those with a row for each token with `size` rows."""

    def __init__(self, source: Source, first: int, pieces: list[list[int]], size: int) -> None:
        self._arrays, self._first, self._pieces = source.arrays, first, pieces
        self._axes, self.shapes = {}, dict(source.arrays.shapes)
        for name, shape in source.arrays.shapes.items():
            path, transposed = source.place(name) or ("", False)
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in _TABLES):
                axis = len(shape) - 1 if transposed else 0
                if shape[axis] == source.config.vocabulary_size:
                    self._axes[name] = axis
                    self.shapes[name] = (*shape[:axis], size, *shape[axis + 1 :])

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """As of every source."""
        return iter([self[name]]) if name in self._axes else self._arrays.blocks(name)

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays[name]
        if name not in self._axes:
            return array
        rows = np.moveaxis(array, self._axes[name], 0)
        grown = np.zeros((self.shapes[name][self._axes[name]], *rows.shape[1:]), rows.dtype)
        grown[: len(rows)] = rows
        for number, ids in enumerate(self._pieces):
            grown[self._first + number] = rows[ids].astype(np.float32).mean(0)
        return np.moveaxis(grown, 0, self._axes[name])
