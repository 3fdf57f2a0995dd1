"""Words to tagged sequences: the pieces of each word, and which of them carries the word's tag.

The first piece of a word carries its tag; the others are in the input and not in the loss (section 5.3
of Devlin et al. 2019). On a decoder it is the last piece: where the first one is read, a causal model has not seen the
rest of the word. A sentence that is too long for one sequence is cut between words into several: every word
gets a tag.
"""

import bisect
import dataclasses
import itertools

import numpy as np
import tensorflow as tf

from bert_tf.tasks.sequences import Sequences, tokenize_with_offsets, tokenize_words


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of one example.

    Attributes:
        pieces: list of lists of ids, none empty; a piece may be a list of ids itself, as a word of characters.
        starts, ends: list of int, the position of each word in the text, in characters: [start, end).
    """

    pieces: list
    starts: list
    ends: list


@dataclasses.dataclass(frozen=True, eq=False)
class TaggedSequences(Sequences):
    """Sequences of a tagging task.

    Attributes:
        words: list of `Words`, one for each example.
        tagged_pieces: for each sequence an int array, the positions of the pieces that carry its words' tags ([CLS]
            counted).
        owners: for each sequence the index of its example, ascending.
    """

    words: list = None
    tagged_pieces: list = None
    owners: list = None

    def examples_of_sequences(self):
        return np.array(self.owners)

    def count_tokens(self, token_id):
        """As `Sequences.count_tokens`, of the words alone: a sentence counts once, not as the context of others too."""
        ids = [piece for example in self.words for pieces in example.pieces for piece in pieces]
        return len(ids), ids.count(token_id)


def words_of_sentences(tokenizer, sentences):
    """`Words` of sentences that are already split; their text is the words joined by spaces.

    Each word has the pieces that it has in that text, tokenized with the space before it (byte-level BPE).
    """
    texts = [" ".join(words) for words in sentences]
    result = []
    for words, *tokens in zip(sentences, *(part.to_list() for part in tokenize_with_offsets(tokenizer, texts))):
        starts = np.cumsum([0] + [len(word) + 1 for word in words])[:-1].tolist()
        ends = [s + len(w) for s, w in zip(starts, words)]
        pieces = [[] for _ in words]
        for piece, start, _ in zip(*tokens):
            # The space between two words belongs to the second.
            pieces[min(bisect.bisect_right(ends, start), len(words) - 1)].append(piece)
        # A word of characters that the tokenizer drops still needs a piece to carry its tag.
        result.append(Words([ids or [tokenizer.unknown_token] for ids in pieces], starts, ends))
    return result


def words_of_texts(tokenizer, texts):
    """`Words` of raw texts: split at white space, each punctuation mark a word of its own.

    The pieces are those of `words_of_sentences` where the text is the words joined by white space.
    """
    result = []
    for ids, begins, spans in zip(*(part.to_list() for part in tokenize_words(tokenizer, texts))):
        firsts = [*(place for place, first in enumerate(begins) if first), len(ids)]
        pieces = [ids[first:end] for first, end in itertools.pairwise(firsts)]
        result.append(Words(pieces, [start for start, _ in spans], [end for _, end in spans]))
    return result


def cut_sequences(words, sequence_length, layout, labels=None, last=False, documents=None, token_shape=()):
    """`TaggedSequences` of at most `sequence_length` tokens, special tokens included.

    Args:
        words: list of `Words`. A word with more pieces than fit into a sequence loses its last ones.
        sequence_length: the largest number of tokens.
        layout: the tokenizer's `Layout`.
        labels: None, or for each example a list of ints, one for each word.
        last: whether the last piece of a word carries its tag, not the first.
        documents: None, or for each example the number of its document; those of one document follow each other. The
            tokens around a sequence in its document then fill it up to `sequence_length`; none of them carries a tag.
        token_shape: the tokenizer's: the shape of a piece.
    """
    before, frame = len(layout.before_first), layout.special_tokens_per_sequence
    room = sequence_length - frame
    owners, sequences = [], []  # a sequence is a list of (pieces of a word, its label)
    for owner, example in enumerate(words):
        free = -1  # begin a sequence, also for an example without words
        for position, pieces in enumerate(example.pieces or [[]]):
            pieces = pieces[:room]
            if len(pieces) > free:
                owners.append(owner)
                sequences.append([])
                free = room
            if pieces:
                sequences[-1].append((pieces, labels[owner][position] if labels else 0))
                free -= len(pieces)

    ids = [[piece for pieces, _ in sequence for piece in pieces] for sequence in sequences]
    context = [([], [])] * len(ids)
    if documents is not None:
        context = surroundings(ids, [documents[owner] for owner in owners], room)

    def ragged(parts, dtype, inner=()):
        values = [np.array(part, dtype).reshape(-1, *inner) for part in parts]
        return tf.RaggedTensor.from_row_lengths(np.concatenate(values), np.array([len(v) for v in values], np.int64))

    begins = [[place == 0 for pieces, _ in words for place in range(len(pieces))] for words in sequences]
    begins = ragged(begins, bool)
    tagged = begins.with_values(tagged_tokens(begins, last)).to_list()
    tagged = [[*([0] * len(left)), *inner, *([0] * len(right))] for (left, right), inner in zip(context, tagged)]
    ids = [[*left, *inner, *right] for (left, right), inner in zip(context, ids)]
    weights = ragged(tagged, np.float32)
    numbers = np.zeros(weights.values.shape, np.int32)
    numbers[weights.values > 0] = [label for words in sequences for _, label in words]
    return TaggedSequences(
        first=ragged(ids, np.int32, token_shape),
        second=None,
        lengths=np.array([len(sequence) + frame for sequence in ids]),
        labels=weights.with_values(numbers) if labels else None,
        weights=weights if labels else None,
        words=words,
        tagged_pieces=[np.flatnonzero(marks) + before for marks in tagged],
        owners=owners,
    )


def tagged_tokens(begins, last):
    """Which token of each word carries its tag: bool [T], of all rows.

    Args:
        begins: bool RaggedTensor [N, None], whether a token begins a word; those before the first one belong to none.
        last: whether it is the last token of the word, as on a decoder, not the first.
    """
    if not last:
        return begins.values
    rows = begins.value_rowids()
    ends = tf.concat([begins.values[1:] | (rows[1:] != rows[:-1]), [True]], 0)[: tf.size(rows)]
    words = tf.concat([[0], tf.cumsum(tf.cast(begins.values, tf.int32))], 0)
    return ends & (words[1:] > tf.gather(words, tf.gather(begins.row_starts(), rows)))


def surroundings(sequences, documents, room):
    """What stands around each sequence in its document: as much as fits, the same on both sides where possible.

    What one side does not have, the other one gets. (The maximum context of the windows of `spans.windows` is the same
    idea for windows with a stride; here each sequence has a window of its own that it is the centre of.)

    Args:
        sequences: lists of ids, in the order of their documents.
        documents: int of each; those of one document follow each other.
        room: the largest number of ids in a window.

    Returns:
        For each sequence (the ids before it, the ids after it).
    """
    result = []
    for _, group in itertools.groupby(zip(documents, sequences), key=lambda pair: pair[0]):
        parts = [ids for _, ids in group]
        document = [piece for ids in parts for piece in ids]
        start = 0
        for ids in parts:
            end = start + len(ids)
            free = room - len(ids)
            left = min(start, max(free // 2, free - (len(document) - end)))
            right = min(len(document) - end, free - left)
            result.append((document[start - left : start], document[end : end + right]))
            start = end
    return result
