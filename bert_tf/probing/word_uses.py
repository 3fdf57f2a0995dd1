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
from bert_tf.probing.token_states import room, token_states
from bert_tf.prompting.rows import read_rows
from bert_tf.tasks.sequences import tokenize_with_offsets
from bert_tf.tasks.tables.files import file_format, read_table

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
class UsesResult:
    """How near the uses of a word are.

    Attributes:
        cosine: tuple of float, the mean cosine of two uses by layer, that of the embeddings first.
        within, between: the same of two uses of one sense, and of two senses; None without senses.
        nearest: tuple of float, by layer the fraction of uses whose nearest use has the same sense; None without
            senses.
        chance: float, that of a use drawn at random; None without senses.
        layer: int, the layer of the next two.
        points: list of [x, y], the first two principal components of the vectors of the layer.
        neighbours: for each use a list of (index, cosine) of the nearest others, the nearest first.
        uses: list of `WordUse`.

    Example:
        texts = ["a good film", "the film is bad", "one film", "a film, a good film"]
        result = run_uses(encoder, tokenizer, [WordUse(text, text.index("film"), text.index("film") + 4) for text in texts])
        result.cosine, result.neighbours[0]
    """

    cosine: tuple
    within: tuple | None
    between: tuple | None
    nearest: tuple | None
    chance: float | None
    layer: int
    points: list
    neighbours: list
    uses: list


def read_uses(path, word, most=None):
    """Finds a word in a corpus; upper and lower case are the same.

    Args:
        path: a text file with a text a line, or a TSV, CSV or JSON-lines file with the column `text` and perhaps
            `sense`.
        word: str, which may hold spaces.
        most: the first so many uses; None for all.

    Returns:
        list of `WordUse`.

    Raises:
        DataError: an unreadable file, or fewer than three uses.

    Example:
        Path("bank.tsv").write_text("text\\tsense\\na bank\\tmoney\\nthe bank, a bank\\tshore\\n")
        [use.sense for use in read_uses("bank.tsv", "bank")]  # ['money', 'shore', 'shore']
    """
    if file_format(path) == "lines":
        rows = [{"text": row[0]} for _, row in read_table(path, "lines").rows if row is not None]
    else:
        rows = read_rows(path, ("text",))
    # Particles follow a Korean word without a space, and other words the Chinese, Japanese and Thai ones.
    before = "" if re.match(UNSPACED, word) else r"(?<!\w)"
    after = "" if re.match(rf"{UNSPACED}|[가-힣]", word[-1:]) else r"(?!\w)"
    pattern = re.compile(before + re.escape(word) + after, re.IGNORECASE)
    places = [(row, match.span()) for row in rows for match in pattern.finditer(row["text"])]
    found = [WordUse(row["text"], *span, row.get("sense") or None) for row, span in places][:most]
    if len(found) < LEAST_USES:
        raise DataError(f"{path} has {brief(word)} {len(found)} times; at least {LEAST_USES} uses are compared")
    return found


def run_uses(encoder, tokenizer, uses, layer=-1, batch_size=32, progress=None):
    """The `UsesResult` of a model.

    Args:
        encoder: an encoder or decoder that can give the outputs of its layers. A decoder sees the text before a word
            alone.
        tokenizer: of its pretraining.
        uses: list of `WordUse`.
        layer: of the map and the neighbours; from the end where negative.
        batch_size: texts computed together.
        progress: function(texts done, all); None for nothing.

    Raises:
        ConfigError: a model that does not give the outputs of its layers.
        DataError: no such layer, or a use of which the tokenizer keeps nothing.
    """
    from sklearn.decomposition import PCA

    vectors = use_vectors(encoder, tokenizer, uses, batch_size, progress)
    if not -len(vectors) <= layer < len(vectors):
        raise DataError(
            f"there is no layer {layer}; the model has 0 to {len(vectors) - 1}, 0 for the output of the embeddings"
        )
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosines = np.einsum("lnh,lmh->lnm", unit, unit)
    others = ~np.eye(len(uses), dtype=bool)
    order = np.argsort(-np.where(others, cosines, -np.inf), axis=-1, kind="stable")
    senses = {}
    if all(use.sense is not None for use in uses) and len({use.sense for use in uses}) > 1:
        same = np.equal.outer(*[np.array([use.sense for use in uses])] * 2)
        nearest = np.take_along_axis(np.broadcast_to(same, cosines.shape), order[..., :1], axis=-1)
        senses = {
            "within": _means(cosines, same & others),
            "between": _means(cosines, ~same),
            "nearest": tuple(nearest.mean(axis=(1, 2)).tolist()),
            "chance": float(same[others].mean()),
        }
    layer %= len(vectors)
    near = order[layer, :, : min(NEIGHBOURS, len(uses) - 1)]
    return UsesResult(
        cosine=_means(cosines, others),
        layer=layer,
        points=PCA(2, svd_solver="full").fit_transform(vectors[layer].astype(np.float64)).tolist(),
        neighbours=[[(int(j), float(cosines[layer, i, j])) for j in row] for i, row in enumerate(near)],
        uses=uses,
        **dict.fromkeys(("within", "between", "nearest", "chance")) | senses,
    )


def use_vectors(encoder, tokenizer, uses, batch_size=32, progress=None):
    """float32 [layers + 1, N, H], the mean of the tokens of each use; of a text that is too long the tokens around it are read.

    Args, Raises: as of `run_uses`.
    """
    most, sequences, places = room(encoder, tokenizer), [], []
    parts = tokenize_with_offsets(tokenizer, [use.text for use in uses])
    for use, ids, starts, ends in zip(uses, *(part.to_list() for part in parts)):
        own = [i for i, (start, end) in enumerate(zip(starts, ends)) if start < use.end and end > use.start][:most]
        if not own:
            raise DataError(
                f"the tokenizer keeps nothing of {brief(use.text[use.start : use.end])} in {brief(use.text)}"
            )
        first = min(max(0, (own[0] + own[-1] + 1 - most) // 2), max(0, len(ids) - most))
        sequences.append(ids[first : first + most])
        places.append(np.array(own) - first)
    found = [None] * len(uses)
    for index, states in token_states(encoder, tokenizer, sequences, batch_size, progress):
        found[index] = states[:, places[index]].mean(axis=1)
    return np.stack(found, axis=1)


def uses_table(result, control=None):
    """The `ProbeTable` of a `UsesResult`, beside that of random weights: numbers by layer, a map, and the texts.

    Example:
        texts = ["a good film", "the film is bad", "one film", "a film, a good film"]
        uses = [WordUse(text, text.index("film"), text.index("film") + 4) for text in texts]
        uses_table(run_uses(encoder, tokenizer, uses)).lines()
    """
    from bert_tf.probing.layer_charts import grid, layer_chart
    from bert_tf.probing.tables import ProbeTable
    from bert_tf.probing.word_map import uses_list, word_map

    names = {"cosine of two uses": "cosine", "within a sense": "within", "between senses": "between"}
    names["nearest of same sense"] = "nearest"
    rows, charts = [], []
    for label, name in names.items():
        values, random = getattr(result, name), control and getattr(control, name)
        if values is None:
            continue
        chance = {"chance": result.chance} if name == "nearest" else {}
        rows.append((label, [*values, chance.get("chance")]))
        if random:
            rows.append((f"{label}: random weights", [*random, None]))
        charts.append(layer_chart(label, {"model": values, "random": random}, chance))
    word = result.uses[0].text[result.uses[0].start : result.uses[0].end]
    note = (
        f"{len(result.uses)} uses, by layer; 0 is the output of the embeddings. The map is the first two principal components of "
        f"layer {result.layer}; distances on it are only part of those between the vectors."
    )
    columns = [*map(str, range(len(result.cosine))), "chance"]
    figures = [grid([word_map(result), *charts]), uses_list(result)]
    return ProbeTable(f"uses of “{word}”", columns, rows, note, figures, bars=False)


def _means(cosines, chosen):
    return tuple(float(x) for x in cosines[:, chosen].mean(axis=1))
