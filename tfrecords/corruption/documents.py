"""The documents of a row, told apart by the separators between them; no token is changed."""

import tensorflow as tf

from tfrecords.corruption.corruption import Corruption, RowExplanation
from tfrecords.corruption.documents_config import DocumentsConfig  # noqa: F401


class DocumentSeparation(Corruption):
    """Batch to features of causal LM.

    Args:
        tokenizer: its `sep_id` is the token at the end of a document; without one, a row is one document.
        config: a `DocumentsConfig`.

    Call arguments:
        batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`.
        seed: not used; nothing is drawn.

    Returns:
        The batch; with `separate` also
            sequence_ids: int32 [B, S], 1..k for the k documents of a row; a separator belongs to the document before
                it; 0 at padding.
            position_ids: int32 [B, S], from 0 in each document; 0 at padding.

    Example:
        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
        corrupt = DocumentSeparation(tokenizer, DocumentsConfig(separate=True))
        batch = {"token_ids": tf.constant([[5, 6, 3, 7, 8]]), "padding_mask": tf.ones((1, 5), bool)}
        corrupt(batch, seed=0)["sequence_ids"]  # [[1, 1, 1, 2, 2]]
    """

    def __call__(self, batch, seed):
        if not self.config.separate or self.tokenizer.sep_id is None:
            return dict(batch)
        real = batch["padding_mask"]
        ends = tf.cast(batch["token_ids"] == self.tokenizer.sep_id, tf.int32)
        documents = tf.where(real, 1 + tf.cumsum(ends, axis=1, exclusive=True), 0)
        return batch | {"sequence_ids": documents, "position_ids": tf.where(real, _from_first(documents), 0)}

    def explain(self, batch, features, seed):
        """Yields a `RowExplanation` for each row."""
        real = batch["padding_mask"].numpy()
        documents = features["sequence_ids"].numpy() if "sequence_ids" in features else real.astype("int32")
        for row, mask in zip(documents, real):
            begins = [position for position in range(mask.sum()) if position == 0 or row[position] != row[position - 1]]
            rule = f"{mask.sum() - len(begins)} tokens: each from the tokens before it in its document"
            if not self.config.separate:
                rule = f"{mask.sum() - 1} tokens: each from all tokens before it in the row"
            notes = {"documents": f"begin at {', '.join(map(str, begins))}"} if self.config.separate else {}
            yield RowExplanation(rule, notes=notes)


def _from_first(documents):
    """int32 [B, S]: how far each position is from the first of its number in the row."""
    rows, length = tf.unstack(tf.shape(documents))
    numbers = documents + tf.range(rows)[:, None] * (length + 1)
    positions = tf.tile(tf.range(length)[None], [rows, 1])
    first = tf.math.unsorted_segment_min(positions, numbers, rows * (length + 1))
    return positions - tf.gather(first, numbers)
