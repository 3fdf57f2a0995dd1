"""The words whose vectors are nearest to those of given words."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.probing.probe import Probe
from bert_tf.probing.tables import ProbeTable


@dataclasses.dataclass(frozen=True)
class Neighbours(Probe):
    """The nearest words by the cosine, of a run of `bert-tf vectors`, a file of vectors, or any model's token table.

    Attributes:
        count: neighbours of each word.

    Example:
        Neighbours(count=1).run(WordTable(["a", "b"], np.eye(2, dtype="float32")), ["a"])["a"]  # {"1": "b 0.00"}
    """

    name, title, asks, has_control = "neighbours", "nearest words", "vectors", False
    count: Annotated[int, Range(at_least=1)] = 10

    def read(self, *words, most=None):
        """The words: they are given in place of files."""
        return words[:most]

    def run(self, model, rows, progress=None):
        cosines = {word: model.neighbours(word, self.count) for word in rows}
        table = [(word, [f"{other} {cosine:.2f}" for other, cosine in near]) for word, near in cosines.items()]
        columns = [str(i + 1) for i in range(max((len(near) for _, near in table), default=0))]
        return ProbeTable(self.title, columns, table, bars=False, facts={"cosines": cosines})
