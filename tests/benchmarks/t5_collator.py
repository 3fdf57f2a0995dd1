"""T5's span corruption as transformers has it, in NumPy: a batch of texts to inputs and labels.

`FlaxDataCollatorForT5MLM` of transformers 4, examples/flax/language-modeling/run_t5_mlm_flax.py; nanoT5 has the same.
"""

import numpy as np


def lengths(tokens, rate=0.15, mean_span=3.0):
    """(input length, label length) of a text of so many tokens, the end token included."""
    noise = round(tokens * rate)
    spans = round(noise / mean_span)
    return tokens - noise + spans + 1, noise + spans + 1


def longest_text(input_length):
    """The most tokens of a text whose input has `input_length` tokens: `compute_input_and_target_lengths`."""
    tokens = input_length
    while lengths(tokens + 1)[0] <= input_length:
        tokens += 1
    return tokens


class T5Collator:
    """Lists of rows of token ids to arrays `input_ids` [B, I] and `labels` [B, T].

    Args:
        sentinels_end: the first sentinel is the id below it, the next ones descend.
        end_id: of </s>.
    """

    def __init__(self, sentinels_end, end_id, rate=0.15, mean_span=3.0):
        self.sentinels_end, self.end_id, self.rate, self.mean_span = sentinels_end, end_id, rate, mean_span

    def __call__(self, rows):
        ids = np.stack(rows)
        noise = np.stack([self._noise_mask(ids.shape[1]) for _ in rows])
        return {"input_ids": self._filtered(ids, noise), "labels": self._filtered(ids, ~noise)}

    def _noise_mask(self, length):
        noise = min(max(int(np.round(length * self.rate)), 1), length - 1)
        spans = max(int(np.round(noise / self.mean_span)), 1)
        parts = np.stack([_partition(length - noise, spans), _partition(noise, spans)], axis=1).reshape(-1)
        starts = np.zeros(length, np.int8)
        starts[np.cumsum(parts)[:-1]] = 1
        return np.cumsum(starts) % 2 == 1

    def _filtered(self, ids, masked):
        """The rows with one sentinel for each run of masked tokens."""
        masked = masked.astype(np.int64)
        starts = masked - np.roll(masked, 1, axis=-1) * masked
        starts[:, 0] = masked[:, 0]
        sentinels = np.where(starts != 0, self.sentinels_end - np.cumsum(starts, axis=-1), 0)
        sentinels -= masked - starts  # -1: a token that the sentinel before it stands for
        full = np.where(sentinels != 0, sentinels, ids)
        kept = full[full >= 0].reshape((len(ids), -1))
        return np.concatenate([kept, np.full((len(ids), 1), self.end_id)], axis=-1)


def _partition(items, parts):
    """The sizes of `parts` non-empty random parts of `items`."""
    first = np.arange(items - 1) < parts - 1
    np.random.shuffle(first)
    return np.unique(np.cumsum(np.pad(first, [[1, 0]])), return_counts=True)[1]
