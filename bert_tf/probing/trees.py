"""Dependency trees of CoNLL-U files."""

import dataclasses

import numpy as np
from scipy.sparse.csgraph import shortest_path

from bert_tf.errors import DataError
from bert_tf.tasks.rows.conll import COLUMNS, read_conll
from bert_tf.tasks.rows.table import read_each
from bert_tf.tasks.rows.values import BadRow

_COLUMNS = [COLUMNS.index(name) for name in ("FORM", "UPOS", "HEAD", "DEPREL")]


@dataclasses.dataclass(frozen=True)
class DependencyTree:
    """A sentence whose words depend on each other.

    Attributes:
        words: list of str.
        heads: list of int, the index of each word's head, from 0; -1 for the root.
        relations: list of str, such as "nsubj".
        punctuation: list of bool, whether each word is punctuation (UPOS PUNCT, or the relation punct).

    Example:
        DependencyTree(["a", "good", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3).distances()[0, 1]  # 2
    """

    words: list
    heads: list
    relations: list
    punctuation: list

    def distances(self):
        """float [N, N], the number of edges between each two words; infinite where the heads do not form a tree."""
        edges = np.zeros((len(self.words),) * 2)
        for word, head in enumerate(self.heads):
            edges[word, head] = head >= 0
        return shortest_path(edges, directed=False, unweighted=True)


def read_trees(path, most=None):
    """Reads the sentences of a CoNLL-U file with their columns HEAD and DEPREL.

    Args:
        path: the file.
        most: the first so many sentences; None for all.

    Returns:
        list of `DependencyTree`.

    Raises:
        DataError: a file in another format, or a sentence whose heads do not form a tree; with its line.

    Example:
        words = ["1\\ta\\t_\\tDET\\t_\\t_\\t2\\tdet\\t_\\t_", "2\\tfilm\\t_\\tNOUN\\t_\\t_\\t0\\troot\\t_\\t_"]
        Path("a.conllu").write_text("\\n".join(words) + "\\n")
        read_trees("a.conllu")[0].heads  # [1, -1]
    """
    table = read_conll(path)
    if not table.is_conllu:
        raise DataError(f"{path} is not a CoNLL-U file, whose ten columns have HEAD and DEPREL among them")

    def read(sentence):
        if sentence.problem:
            raise sentence.problem
        words, marks, heads, relations = ([fields[n].strip() for fields in sentence.words] for n in _COLUMNS)
        numbers = [_head(head, len(words), line) for head, line in zip(heads, sentence.lines)]
        punctuation = [mark == "PUNCT" or relation == "punct" for mark, relation in zip(marks, relations)]
        tree = DependencyTree(words, numbers, relations, punctuation)
        if numbers.count(-1) != 1 or not np.isfinite(tree.distances()).all():
            raise BadRow("the heads of the sentence do not form a tree with one root")
        return [tree]

    return read_each(dataclasses.replace(table, rows=table.rows[:most]), read).items


def _head(text, words, line):
    if not text.isdecimal() or int(text) > words:
        raise BadRow(f"the head is '{text}'; it must be the number of a word of the sentence, or 0", line=line)
    return int(text) - 1
