"""Random tokens as frequent as in the corpus: a sample of the tokens of the shards."""

import numpy as np

from bert_tf.errors import DataError

_SAMPLE = 1 << 20


def sample_tokens(reader, tokenizer, count=_SAMPLE):
    """About `count` tokens of examples from all over the shards, a function of the shards alone: int32 [R].

    They come in whole batches, without special tokens and [UNK]. DataError where there are no others.
    """
    batches, num_tokens = [], 0
    dataset = reader.dataset(min(256, reader.num_examples), seed=0, epochs=1, drop_remainder=False)
    for batch in dataset.as_numpy_iterator():
        ids = batch["token_ids"][batch["padding_mask"]]
        batches.append(ids[~np.isin(ids, tokenizer.special_ids)])
        num_tokens += len(batches[-1])
        if num_tokens >= count:
            break
    if not num_tokens:
        raise DataError(
            f"{reader.folder} holds special tokens only; random_tokens: corpus and rare_token_exponent need others"
        )
    return np.concatenate(batches)
