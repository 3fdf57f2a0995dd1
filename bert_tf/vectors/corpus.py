"""From text to word ids on disk."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from bert_tf.errors import DataError
from bert_tf.files import atomic_write, explain_disk_errors, is_there, sync
from bert_tf.parsing import read_json_object

IDS, ROWS, RECORD = "ids.int32", "rows.npy", "corpus.json"


@dataclasses.dataclass
class EncodedCorpus:
    """A corpus as numbers of words, most of it on disk. Pure NumPy: worker processes open it.

    Attributes:
        counts: int64 [V], how often each word is in the corpus. Word 0 is the most frequent one.
        ids: int32 [N], the words of the corpus.
        rows: int64 [R + 1], where each row begins in `ids`, and the end of the last.
        bounds: int64 [B + 1], the rows at which blocks begin, and the end of the last.

    Example:
        EncodedCorpus.open("run/corpus", block_words=10_000).block(0)
    """

    counts: np.ndarray
    ids: np.ndarray
    rows: np.ndarray
    bounds: np.ndarray

    @classmethod
    def open(cls, folder, block_words):
        """The corpus that `encode` wrote.

        Args:
            folder: the folder.
            block_words: a block is rows of about so many words.
        """
        folder = Path(folder)
        record = read_json_object(folder / RECORD)
        rows = np.load(folder / ROWS)
        ids = np.memmap(folder / IDS, np.int32, "r", shape=(int(rows[-1]),))
        first = np.searchsorted(rows[:-1], np.arange(0, rows[-1], block_words))
        bounds = np.unique(np.append(first, len(rows) - 1))
        return cls(np.array(record["counts"], np.int64), ids, rows, bounds)

    @property
    def num_blocks(self):
        return len(self.bounds) - 1

    def block(self, number):
        """(the words of a block, int32 [N]; the row of each, from 0)."""
        first, last = self.bounds[number], self.bounds[number + 1]
        words = np.array(self.ids[self.rows[first] : self.rows[last]])
        return words, np.repeat(np.arange(last - first), np.diff(self.rows[first : last + 1]))

    def block_words(self, number):
        """The number of words in a block."""
        return int(self.rows[self.bounds[number + 1]] - self.rows[self.bounds[number]])


def encode(texts, tokenizer, folder, row_words, progress=None):
    """Writes the words of some texts as numbers, 0 for the first word of the vocabulary. Unknown words are left out.

    Args:
        texts: iterable of str, the documents.
        tokenizer: of `train_words`.
        folder: is made; a finished one is kept as it is.
        row_words: documents are cut into rows of at most so many words.
        progress: a `Progress` in words, or None.

    Raises:
        DataError: no document has two words of the vocabulary.
        RunDirectoryError: the folder cannot be written.
    """
    from bert_tf.tokenizers.wordpiece.whole_words import SPECIAL_TOKENS

    folder, first = Path(folder), len(SPECIAL_TOKENS)
    if is_there(folder / RECORD):
        return
    counts = np.zeros(tokenizer.vocabulary_size - first, np.int64)
    rows, done = [np.zeros(1, np.int64)], 0
    with explain_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / IDS, "wb") as file:
            for batch in _batches(texts):
                tokens = tokenizer.tokenize(batch)
                ids, lengths = tokens.values.numpy() - first, tokens.row_lengths().numpy()
                documents = np.repeat(np.arange(len(lengths)), lengths)[ids >= 0]
                ids = ids[ids >= 0].astype(np.int32)
                counts += np.bincount(ids, minlength=len(counts))
                file.write(ids.tobytes())
                rows.append(done + _row_ends(np.bincount(documents, minlength=len(lengths)), row_words))
                done += len(ids)
                if progress is not None:
                    progress.update(done)
        rows = np.concatenate(rows)
        if np.diff(rows).max(initial=0) < 2:
            raise DataError("no document has two words of the vocabulary; give more text or lower vocabulary.min_count")
        with open(folder / ROWS, "wb") as file:
            np.save(file, rows)
        sync(folder / IDS)
        sync(folder / ROWS)
        with atomic_write(folder / RECORD) as file:  # the last file: without it the folder is not finished
            json.dump({"counts": counts.tolist()}, file)


def _row_ends(lengths, row_words):
    """Where rows of at most `row_words` end that cut documents of these lengths; int64, in order."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    filled = zip(begins[lengths > 0], ends[lengths > 0])
    pieces = [np.append(np.arange(begin + row_words, end, row_words), end) for begin, end in filled]
    return np.concatenate(pieces).astype(np.int64) if pieces else np.zeros(0, np.int64)


def _batches(texts, documents=512, characters=1 << 21):
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if len(batch) == documents or size > characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
