"""The uses of one word in a corpus: how near are their vectors in context, layer by layer?

The vector of a use is the mean of the word's tokens. Uses of one sense should be nearer to each other than those of two
(Wiedemann et al. 2019; Reif et al. 2019); how near any two uses are shows how much a layer depends on the context
(Ethayarajh 2019, section 3.3).
"""

import dataclasses
import re

import numpy as np

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.probing.probe import Probe
from bert_tf.probing.scored_texts import tokenize_texts, tokens_of
from bert_tf.probing.tables import layer_table
from bert_tf.probing.word_map import uses_list, word_map
from bert_tf.tasks.rows.files import file_format, read_table
from bert_tf.tasks.rows.opening import read_dicts

#: The neighbours of each use that are listed.
NEIGHBOURS = 3
#: Scripts that put no space between words.
UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]"
#: Fewer uses show nothing.
LEAST_USES = 3


@dataclasses.dataclass(frozen=True)
class WordUse:
    """A word in a text.

    Attributes:
        text: str.
        start, end: int, the characters [start, end) of the word.
        sense: str; None where it is not known.

    Example:
        WordUse("the bank of the river", 4, 8, "shore")
    """

    text: str
    start: int
    end: int
    sense: str | None = None


@dataclasses.dataclass(frozen=True)
class WordUses(Probe):
    """How near are the uses of a word in a corpus to each other?

    Rows, by layer: the mean cosine of two uses; with senses also of two uses of one sense, and of two senses, and the
    fraction of uses whose nearest use has the same sense, beside that of a use drawn at random. Facts: "layer", that of
    the map; "points", [x, y] for each use, the first two principal components of its vectors; "neighbours", for each use a
    list of (index, cosine) of the nearest others, the nearest first; "uses".

    Attributes:
        layer: of the map and the neighbours; from the end where negative.

    Example:
        texts = ["a good film", "the film is bad", "one film", "a film, a good film"]
        uses = [WordUse(text, text.index("film"), text.index("film") + 4) for text in texts]
        table = WordUses().run(LayerReader(encoder, tokenizer), uses)
        table["cosine of two uses"]["0"], table.facts["neighbours"][0]
    """

    layer: int = -1

    name, asks = "word", "layers"

    def read(self, word, corpus, most=None):
        """Finds a word in a corpus; upper and lower case are the same.

        Args:
            word: str, which may hold spaces.
            corpus: a text file with a text a line, or a TSV, CSV or JSON-lines file with the column `text` and perhaps
                `sense`.
            most: the first so many uses; None for all.

        Returns:
            list of `WordUse`.

        Raises:
            DataError: an unreadable file, or fewer than three uses.

        Example:
            Path("bank.tsv").write_text("text\\tsense\\na bank\\tmoney\\nthe bank, a bank\\tshore\\n")
            [use.sense for use in WordUses().read("bank", "bank.tsv")]  # ['money', 'shore', 'shore']
        """
        if file_format(corpus) == "lines":
            rows = [{"text": row[0]} for _, row in read_table(corpus, "lines").rows if row is not None]
        else:
            rows = read_dicts(corpus, ("text",))
        # Particles follow a Korean word without a space, and other words the Chinese, Japanese and Thai ones.
        before = "" if re.match(UNSPACED, word) else r"(?<!\w)"
        after = "" if re.match(rf"{UNSPACED}|[가-힣]", word[-1:]) else r"(?!\w)"
        pattern = re.compile(before + re.escape(word) + after, re.IGNORECASE)
        places = [(row, match.span()) for row in rows for match in pattern.finditer(row["text"])]
        uses = [WordUse(row["text"], *span, row.get("sense") or None) for row, span in places][:most]
        if len(uses) < LEAST_USES:
            raise DataError(f"{corpus} has {brief(word)} {len(uses)} times; at least {LEAST_USES} uses are compared")
        return uses

    def run(self, reader, uses, progress=None):
        """The `ProbeTable` of a model.

        Raises:
            ConfigError: a model that does not give the outputs of its layers.
            DataError: no such layer, or a use of which the tokenizer keeps nothing.
        """
        from sklearn.decomposition import PCA

        vectors, layer = use_vectors(reader, uses, progress), self.layer
        if not -len(vectors) <= layer < len(vectors):
            raise DataError(f"there is no layer {layer}; the model has 0 (the embeddings) to {len(vectors) - 1}")
        unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        cosines = np.einsum("lnh,lmh->lnm", unit, unit)
        others = ~np.eye(len(uses), dtype=bool)
        order = np.argsort(-np.where(others, cosines, -np.inf), axis=-1, kind="stable")
        rows = {"cosine of two uses": (_means(cosines, others), None)}
        if all(use.sense is not None for use in uses) and len({use.sense for use in uses}) > 1:
            same = np.equal.outer(*[np.array([use.sense for use in uses])] * 2)
            nearest = np.take_along_axis(np.broadcast_to(same, cosines.shape), order[..., :1], axis=-1)
            rows["within a sense"] = _means(cosines, same & others), None
            rows["between senses"] = _means(cosines, ~same), None
            rows["nearest of same sense"] = nearest.mean(axis=(1, 2)).tolist(), float(same[others].mean())
        layer %= len(vectors)
        points = PCA(2, svd_solver="full").fit_transform(vectors[layer].astype(np.float64)).tolist()
        near = order[layer, :, : min(NEIGHBOURS, len(uses) - 1)]
        near = [[(int(j), float(cosines[layer, i, j])) for j in of_use] for i, of_use in enumerate(near)]
        note = (
            f"{len(uses)} uses. The map is the first two principal components of layer {layer}; distances on it are only "
            "part of those between the vectors."
        )
        title = f"uses of “{uses[0].text[uses[0].start : uses[0].end]}”"
        facts = {"layer": layer, "points": points, "neighbours": near, "uses": uses}
        shown = {"figures": [word_map(uses, points, layer)], "texts": uses_list(uses, near), "facts": facts}
        return layer_table(title, rows, "chance", note, curves=tuple(rows), **shown)


def use_vectors(reader, uses, progress=None):
    """float32 [layers + 1, N, H], the mean of the tokens of each use; of a text that is too long the tokens around it are read.

    Args, Raises: as of `WordUses.run`.
    """
    most, sequences, places = reader.room, [], []
    for use, (ids, starts, ends, _) in zip(uses, tokenize_texts(reader.tokenizer, [use.text for use in uses])):
        inside = np.flatnonzero(tokens_of(starts, ends, (use.start, use.end), use.text))[:most]
        first = min(max(0, (inside[0] + inside[-1] + 1 - most) // 2), max(0, len(ids) - most))
        sequences.append(ids[first : first + most])
        places.append(inside - first)
    vectors = [None] * len(uses)
    for index, states in reader.hidden_states(sequences, progress):
        vectors[index] = states[:, places[index]].mean(axis=1)
    return np.stack(vectors, axis=1)


def _means(cosines, chosen):
    return tuple(float(x) for x in cosines[:, chosen].mean(axis=1))
