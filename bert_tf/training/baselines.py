"""The baseline of masked LM: a model that knows only token frequencies."""

import numpy as np

from bert_tf.errors import DataError


def unigram(batches, tokenizer, examples=50_000):
    """Loss and accuracy of guessing masked tokens by frequency, from the first examples.

    Args:
        batches: of uncorrupted examples, dicts with `token_ids` and `padding_mask` [B, S]; where they have `target_ids`
            and `target_weights` [B, T], the targets are guessed. For example `ShardReader.uncorrupted`.
        tokenizer: its special tokens are left out, as masking leaves them out; [UNK] too, even where
            `masking.predict_unknown` is set.
        examples: how many to count at most.

    Raises:
        DataError: there are special tokens alone.

    Returns:
        dict: "masked_lm_loss", the entropy of the unigram distribution in nats (the cross-entropy
        of guessing it); "masked_lm_accuracy", the relative frequency of the most frequent token;
        "tokens_per_example", real tokens in a row, special ones included.
    """
    counts = np.zeros(tokenizer.vocabulary_size, np.int64)
    rows = tokens = 0
    for batch in batches:
        real = batch["token_ids"][batch["padding_mask"]]
        rows, tokens = rows + len(batch["token_ids"]), tokens + len(real)
        if "target_ids" in batch:
            real = batch["target_ids"][batch["target_weights"] > 0]
            tokens += len(real)
        counts += np.bincount(real, minlength=len(counts))
        if rows >= examples:
            break
    counts[list(tokenizer.special_ids)] = 0
    if not counts.any():
        raise DataError(
            "the first rows of the shards hold no token but special ones and [UNK]; train a vocabulary on this corpus "
            "(bert-tf vocab) and write the shards with it"
        )
    frequency = counts[counts > 0] / counts.sum()
    return {
        "masked_lm_loss": float(-(frequency * np.log(frequency)).sum()),
        "masked_lm_accuracy": float(frequency.max()),
        "tokens_per_example": tokens / rows,
    }
