"""Minimal pairs: of two sentences that differ in one point, is the acceptable one more probable?

BLiMP (Warstadt et al. 2020) and files like it; for models that see both sides as Salazar et al. 2020 (section 3).
"""

from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.probing.likelihood.engine import LikelihoodProbe, Question
from bert_tf.probing.rows import json_files
from bert_tf.tasks.rows.opening import read_dicts

GOOD, BAD, KIND = "sentence_good", "sentence_bad", "linguistics_term"


class MinimalPairs(LikelihoodProbe):
    """How often is the acceptable sentence the more probable one? A row for each phenomenon.

    Example:
        MinimalPairs().run(scorer, [Question(("all", "order"), ("a good film", "good a film"))])["order"]["accuracy"]
    """

    name, title = "pairs", "minimal pairs"
    columns = ("accuracy", "chance", "random", "pairs")
    note = "accuracy: the acceptable sentence is the more probable one; random: the same of random weights"

    def read(self, path, most=None):
        """Reads minimal pairs.

        Args:
            path: BLiMP as it is distributed (its zip, the folder of its .jsonl files, or one of them), or a TSV, CSV or
                JSON-lines file with the columns `sentence_good`, `sentence_bad` and perhaps `linguistics_term`.
            most: as of `Probe.read`.

        Returns:
            list of `Question`, the acceptable sentence first. The kind is BLiMP's `linguistics_term`, else the name of
            the file.

        Raises:
            DataError: no such file, no pair in it, or a row without one of the sentences; with file and line.
        """
        path, pairs = Path(path), []
        if path.is_dir() or path.suffix in (".jsonl", ".zip"):
            files = json_files(path, (GOOD, BAD))
        else:
            files = [(path.stem, read_dicts(path, (GOOD, BAD)))]
        for name, rows in files:
            pairs += [Question(("all", row.get(KIND) or name), (row[GOOD], row[BAD])) for row in rows[:most]]
        if not pairs:
            raise DataError(f"{path} holds no minimal pairs; give BLiMP's zip or folder, or a file with {GOOD}, {BAD}")
        return pairs

    def answer(self, question, scores):
        (good, _), (bad, _) = scores
        return {"accuracy": good > bad, "chance": 0.5}
