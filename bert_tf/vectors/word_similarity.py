"""Word similarity and nearest neighbours of word vectors."""

import dataclasses
import unicodedata
from collections.abc import Callable

import numpy as np
from scipy.stats import spearmanr

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.parsing import brief, parse_number


@dataclasses.dataclass(frozen=True)
class WordTable:
    """Words and their vectors of length 1.

    Attributes:
        words: list of str.
        vectors: float32 [V, D].
        spell: function from a word as it is typed to the word as it is in `words`, or None if it has no vector; without
            one words are looked up as they are.

    Example:
        WordTable(["a", "b"], np.eye(2, dtype="float32")).neighbours("a", 1)  # [('b', 0.0)]
    """

    words: list
    vectors: np.ndarray
    spell: Callable | None = None

    def __post_init__(self):
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        object.__setattr__(self, "vectors", self.vectors / np.maximum(lengths, 1e-12))
        object.__setattr__(self, "_ids", {word: i for i, word in enumerate(self.words)})

    @classmethod
    def load(cls, path):
        """The token table of a run, of a published checkpoint or of a file of vectors; special tokens are left out.

        Raises:
            RunDirectoryError, DataError, ConfigError: as `bert_tf.load`.
        """
        source = open_source(path)
        tokenizer = source.tokenizer
        special = set(tokenizer.special_tokens)
        ids = [i for i, token in enumerate(tokenizer.vocabulary) if token not in special]
        table = np.asarray(OpenedModel(source).backbone.embedding_table)[ids]
        # Without accents a vocabulary holds Hangul as its letters: shown, and looked up, as it is typed.
        words = {i: unicodedata.normalize("NFC", tokenizer.vocabulary[i]) for i in ids}

        def spell(word):
            tokens = tokenizer.tokenize([word]).values.numpy()
            return words.get(int(tokens[0])) if len(tokens) == 1 else None

        return cls(list(words.values()), table, spell)

    def find(self, word):
        """The row of a word; None if it has no vector."""
        row = self._ids.get(word)
        return self._ids.get(self.spell(word)) if row is None and self.spell else row

    def neighbours(self, word, count=10):
        """The words with the nearest vectors: list of (word, cosine), the nearest first.

        Raises:
            DataError: the word has no vector; names a similar one.
        """
        row = self.find(word)
        if row is None:
            raise DataError(f"{brief(word)} has no vector{nearest(word, self.words[:100_000])}")
        cosines = self.vectors @ self.vectors[row]
        cosines[row] = -np.inf
        chosen = np.argsort(-cosines, kind="stable")[: min(count, len(self.words) - 1)]
        return [(self.words[i], float(cosines[i])) for i in chosen]


def similarity(table, path):
    """How well cosines agree with people's judgements of word pairs, such as WordSim-353 and SimLex-999.

    Args:
        table: a `WordTable`.
        path: a file of lines with two words and a number, separated by tabulators or commas; the number is the first of
            the line (SimLex-999 has the part of speech before it). Lines that begin with "#", and a first line without
            a number, are left out.

    Returns:
        dict: "spearman", "pairs" (those whose words both have a vector), "unknown" (the number of other pairs).

    Raises:
        DataError: a line that is no pair, fewer than two pairs with vectors, or all with one score.

    Example:
        Path("pairs.tsv").write_text("a\\tb\\t1\\na\\tc\\t3\\nb\\tc\\t2\\n")
        vectors = np.array([[1, 0], [0, 1], [1, 0.5]], "float32")
        similarity(WordTable(["a", "b", "c"], vectors), "pairs.tsv")["spearman"]  # 1.0
    """
    judged, cosines, unknown = [], [], 0
    for first, second, score in read_pairs(path):
        rows = table.find(first), table.find(second)
        if None in rows:
            unknown += 1
            continue
        judged.append(score)
        cosines.append(float(table.vectors[rows[0]] @ table.vectors[rows[1]]))
    if len(judged) < 2:
        raise DataError(f"{path}: only {len(judged)} of {len(judged) + unknown} pairs have a vector for both words")
    if len(set(judged)) == 1:
        raise DataError(f"{path}: all {len(judged)} pairs have the score {judged[0]:g}; give pairs of different scores")
    return {"spearman": float(spearmanr(judged, cosines).statistic), "pairs": len(judged), "unknown": unknown}


def read_pairs(path):
    """The lines of a file for `similarity`: list of (word, word, float).

    Raises:
        DataError: a line that is no pair; names it.
    """
    pairs = []
    with explain_reading(path), open(path, encoding="utf-8-sig", errors="replace") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip().strip('"') for field in line.split("\t" if "\t" in line else ",")]
        score = next((value for value in map(parse_number, fields[2:]) if value is not None), None)
        if score is not None:
            pairs.append((fields[0], fields[1], score))
        elif number > 1:  # else the names of the columns
            raise DataError(f"{path}, line {number}: expected two words and a number, got {brief(line)}")
    return pairs
