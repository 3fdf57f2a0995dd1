"""Minimal pairs: of two sentences that differ in one point, is the acceptable one more probable?

BLiMP (Warstadt et al. 2020) and files like it; for models that see both sides as Salazar et al. 2020 (section 3).
"""

import dataclasses
import zipfile
from pathlib import Path

import numpy as np

from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.parsing import parse_json
from bert_tf.probing.tables import ProbeTable, beside
from bert_tf.prompting.rows import read_rows
from bert_tf.tasks.tables.files import decode_text, numbered_lines, read_text

GOOD, BAD, KIND = "sentence_good", "sentence_bad", "linguistics_term"


@dataclasses.dataclass(frozen=True)
class MinimalPair:
    """A pair of sentences.

    Attributes:
        good, bad: str, the acceptable and the unacceptable one.
        kind: str, the phenomenon.

    Example:
        MinimalPair("she sings", "she sing", "agreement")
    """

    good: str
    bad: str
    kind: str


@dataclasses.dataclass(frozen=True)
class PairsResult:
    """How often the acceptable sentence is more probable.

    Attributes:
        accuracy: float, the fraction over all pairs; 0.5 by chance.
        by_kind: {kind: (accuracy, number of pairs)}, the kinds as they are first found.
        count: int, the pairs.

    Example:
        run_pairs(scorer, [MinimalPair("a good film", "good a film", "order")]).by_kind
    """

    accuracy: float
    by_kind: dict
    count: int


def read_pairs(path, most=None):
    """Reads minimal pairs.

    Args:
        path: BLiMP as it is distributed (its zip, the folder of its .jsonl files, or one of them), or a TSV, CSV or
            JSON-lines file with the columns `sentence_good`, `sentence_bad` and perhaps `linguistics_term`.
        most: the first so many pairs of each file; None for all.

    Returns:
        list of `MinimalPair`. The kind is BLiMP's `linguistics_term`, else the name of the file.

    Raises:
        DataError: no such file, no pair in it, or a row without one of the sentences; with file and line.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.jsonl") if not file.name.startswith("."))
        pairs = [pair for file in files for pair in _of_file(file, most)]
    elif path.suffix == ".zip":
        pairs = _of_zip(path, most)
    else:
        pairs = _of_file(path, most)
    if not pairs:
        raise DataError(f"{path} holds no minimal pairs; give BLiMP's zip or folder, or a file with {GOOD} and {BAD}")
    return pairs


def run_pairs(scorer, pairs, progress=None):
    """The `PairsResult` of a model.

    Args:
        scorer: of `text_scorer`.
        pairs: list of `MinimalPair`.
        progress: function(pairs done), called now and then; None for nothing.

    Example:
        run_pairs(scorer, [MinimalPair("a good film", "good a film", "order")]).accuracy
    """
    right, size = [], 8 * scorer.batch_size
    for begin in range(0, len(pairs), size):
        part = pairs[begin : begin + size]
        scored = scorer.score([text for pair in part for text in (pair.good, pair.bad)])
        likelihoods = np.array([text.log_likelihood for text in scored]).reshape(-1, 2)
        right += (likelihoods[:, 0] > likelihoods[:, 1]).tolist()
        if progress is not None:
            progress(len(right))
    kinds = {}
    for pair, hit in zip(pairs, right):
        kinds.setdefault(pair.kind, []).append(hit)
    by_kind = {kind: (float(np.mean(hits)), len(hits)) for kind, hits in kinds.items()}
    return PairsResult(float(np.mean(right)), by_kind, len(pairs))


def pairs_table(result, control=None):
    """The `ProbeTable` of a `PairsResult`, beside that of random weights.

    Example:
        pairs_table(run_pairs(scorer, [MinimalPair("a good film", "good a film", "order")])).lines()
    """
    rows = [("all", [result.accuracy, 0.5, beside(control, lambda c: c.accuracy), result.count])]
    for kind, (accuracy, count) in result.by_kind.items():
        rows.append((kind, [accuracy, 0.5, beside(control, lambda c: c.by_kind[kind][0]), count]))
    note = "accuracy: the acceptable sentence is the more probable one; random: the same of random weights"
    return ProbeTable("minimal pairs", ["accuracy", "chance", "random", "pairs"], rows, note)


def _of_file(path, most):
    if path.suffix == ".jsonl":
        rows = _json_rows(read_text(path), path, most)
    else:
        rows = read_rows(path, (GOOD, BAD))[:most]
    return [MinimalPair(row[GOOD], row[BAD], row.get(KIND) or path.stem) for row in rows]


def _of_zip(path, most):
    # BLiMP's zip was packed on a Mac: beside the files it has "__MACOSX/data/._adjunct_island.jsonl", which is no text.
    pairs = []
    try:
        with explain_reading(path), zipfile.ZipFile(path) as archive:
            for name in sorted(
                n for n in archive.namelist() if n.endswith(".jsonl") and not Path(n).name.startswith(".")
            ):
                where = f"{path}: {name}"
                rows = _json_rows(decode_text(archive.read(name), where), where, most)
                pairs += [MinimalPair(row[GOOD], row[BAD], row.get(KIND) or Path(name).stem) for row in rows]
    except zipfile.BadZipFile as error:
        raise DataError(f"cannot read {path}: {error}") from None
    return pairs


def _json_rows(text, path, most):
    """The first rows of a text of JSON lines, which may have keys of any type beside the two sentences."""
    rows = []
    for number, line in numbered_lines(text):
        if most is not None and len(rows) == most:
            break
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}")
        for name in (GOOD, BAD):
            if not isinstance(row, dict) or not isinstance(row.get(name), str):
                raise DataError(f"{path}, line {number}: there is no text '{name}'; each line needs {GOOD} and {BAD}")
        rows.append(row)
    return rows
