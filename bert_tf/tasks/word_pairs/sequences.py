"""Texts with two marked words as token ids, and the columns of the words in a row."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.sequences import Sequences, tokenize_with_offsets
from bert_tf.tokenizers.ops.model_rows import kept_of_pair


@dataclasses.dataclass(frozen=True, eq=False)
class WordPairSequences(Sequences):
    """Texts or pairs of texts with two marked words each.

    Attributes:
        spans: int32 [R, 2, 2], for each word the columns [start, end) of its tokens in the row, special tokens counted.
    """

    spans: np.ndarray | None = None

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """See `Sequences.features`; with `spans` int32 [B, 2, 2]."""
        features = super().features(tokenizer, chosen, present, sequence_length, width)
        return features | {"spans": tf.gather(self.spans, chosen)}


def encode_word_pairs(tokenizer, examples, labels, sequence_length):
    """`WordPairSequences` of `Examples` whose `details` are pairs of `Mark`.

    The tokens of a word are those that hold one of its characters.

    Raises:
        DataError: a word without a token, or whose tokens are cut off because the row is too long. jiant would classify
            the vector of another token.
    """
    layout, frame, count = tokenizer.layout, tokenizer.layout.special_tokens_per_sequence, len(examples)
    tokens = tokenize_with_offsets(tokenizer, examples.texts + (examples.text_pairs or []))
    first, second = tokens[0][:count], None
    lengths = first.row_lengths().numpy()
    kept, offsets = [np.minimum(lengths, sequence_length - frame)], [len(layout.before_first)]
    if examples.text_pairs is not None:
        second, frame = tokens[0][count:], layout.special_tokens_per_pair
        kept = [x.numpy() for x in kept_of_pair(lengths, second.row_lengths(), sequence_length - frame, layout)]
        offsets.append(offsets[0] + kept[0] + len(layout.after_first) + len(layout.before_second))
    starts, ends = (part.to_list() for part in tokens[1:])
    spans = np.zeros((count, 2, 2), np.int32)
    for row, marks in enumerate(examples.details):
        for word, mark in enumerate(marks):
            text = row + mark.text * count
            places = enumerate(zip(starts[text], ends[text]))
            inside = [token for token, (start, end) in places if start < mark.end and end > mark.start]
            problem = None if inside else "has no token; correct the row, or remove it"
            if inside and inside[-1] >= kept[mark.text][row]:
                problem = f"is cut off by task.sequence_length={sequence_length}; raise it, or remove the row"
            if problem:
                marked = (examples.text_pairs if mark.text else examples.texts)[row][mark.start : mark.end]
                raise DataError(f"{examples.where(row)}: the marked word {brief(marked)} {problem}")
            offset = np.broadcast_to(offsets[mark.text], count)[row]
            spans[row, word] = inside[0] + offset, inside[-1] + 1 + offset
    return WordPairSequences(first, second, sum(kept) + frame, labels, spans=spans)
