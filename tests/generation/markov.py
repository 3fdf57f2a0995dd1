"""A language model whose next token depends on the last two, with the interface of `DecoderSteps`."""

import numpy as np
from keras import ops

from bert_tf.generation.steps import Steps


class MarkovSteps(Steps):
    """Logits are `table[last but one, last]`. The cache is the token before the last."""

    def __init__(self, table, token_ids, max_new_tokens, padding_mask=None):
        self.table = np.asarray(table, "float32")
        self.token_ids = ops.convert_to_tensor(np.asarray(token_ids, "int32"))
        mask = np.ones_like(token_ids) if padding_mask is None else padding_mask
        self.padding_mask = ops.convert_to_tensor(np.asarray(mask, bool))
        self.prompt_length, self.max_new_tokens = self.token_ids.shape[1], max_new_tokens

    def empty_cache(self):
        return [self.token_ids[:, -2]]

    def decode(self, token_ids, cache, index):
        last = token_ids[:, -1]
        return self.logits(cache[0], last), [last]

    def repeat(self, count):
        prompts, masks = (np.repeat(x, count, axis=0) for x in (self.token_ids, self.padding_mask))
        return MarkovSteps(self.table, prompts, self.max_new_tokens, masks)

    def logits(self, before, last):
        size = self.table.shape[0]
        return ops.take(ops.convert_to_tensor(self.table.reshape(size * size, size)), before * size + last, axis=0)
