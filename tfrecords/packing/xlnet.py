"""XLNet's rows: segments of running text, each followed by two texts that may belong together."""

import random
from bisect import bisect_left, bisect_right

import numpy as np

from bert_tf.errors import ConfigError
from tfrecords.packing.spans import excess

_SPECIAL_TOKENS = 3  # <sep> after each of the two texts, <cls>


def xlnet_rows(tokens, eod_id, layout, sequence_length, segments, seed):
    """Rows of segments as zihangdai/xlnet, data_utils.py, `create_tfrecords` and `_split_a_and_b`.

    All documents are one running text, with <eod> at the end of each. A segment is the next
    `reuse_length` tokens of it (half a segment), then A <sep> B <sep> <cls>. A is the text that follows, up to
    the end of a random sentence; half of the time B is the text after A, else it begins with the
    sentence at a random position of the text (always, where A has no end to choose). The longer of
    the two loses tokens at its end until both fill the segment. The next segment begins
    `reuse_length` tokens after this one: it reads the text of A again, and remembers the running
    text alone.

    Every row comes twice: number 0, 2, ... forwards; 1, 3, ... of the text in reverse order
    ("bi_data"), whose segments are cut and drawn again, so that A and B are the text before them.

    The original keeps memory from one batch to the next. Here a row holds `segments` of the running text, and
    memory lasts as long as a row (see `bert_tf.objectives.PermutationLM`). The published memory of 384 tokens, of
    segments of 512 that reuse 256, is full from a row's third segment on. The running text is that of a chunk of
    the corpus, in the original that of a row of its batch; its end, of less than a row, is left out.

    Args:
        tokens: `corpus.tokens.Tokens`.
        eod_id: the id of <eod>, or None to let documents follow each other without a mark.
        layout: the tokenizer's `Layout`, of the name "xlnet".
        sequence_length: S, tokens of a row.
        segments: how many segments a row has.
        seed: integer.

    Returns:
        ids: [R, S], R even, special tokens included; every row is full.
        lengths: int [R, 2 * segments], of each segment: how many tokens it has up to its first
            <sep>, and from there up to its second one; <cls> is the last.
        left_out: how many tokens of the running text are reused by no row.
    """
    ids, borders = running_text(tokens, eod_id)
    segment = sequence_length // segments
    reuse = reuse_length(sequence_length, segments)
    draw = random.Random(seed).random
    special = [np.array(part, ids.dtype) for part in (layout.after_first, layout.after_second, layout.at_end)]
    directions = []
    for text, starts in ((ids, borders), (ids[::-1], borders[-1] - borders[::-1])):
        pieces, lengths = [], []
        for start, a_end, b_start, b_end in _cut(starts.tolist(), segment, reuse, draw):
            pieces += [text[start:a_end], special[0], text[b_start:b_end], *special[1:]]
            lengths += [a_end - start + 1, b_end - b_start + 1]
        directions.append((np.concatenate([text[:0], *pieces]), np.array(lengths, np.int64)))
    count = min(len(lengths) for _, lengths in directions) // (2 * segments)
    rows, lengths = (
        np.stack([part[: count * width].reshape(count, width) for part in parts], 1).reshape(2 * count, width)
        for parts, width in zip(zip(*directions), (sequence_length, 2 * segments))
    )
    return rows, lengths, len(ids) - count * segments * reuse


def reuse_length(sequence_length, segments):
    """How many tokens of each segment are running text, which the next segment remembers."""
    return sequence_length // segments // 2


def running_text(tokens, eod_id):
    """The token ids with `eod_id` after each document, as part of its last sentence, and the sentences' splits."""
    ends = tokens.document_splits[1:]
    if eod_id is None:
        return tokens.token_ids, tokens.sentence_splits
    ended = np.searchsorted(ends, np.arange(len(tokens.sentence_splits)), "right")
    return np.insert(tokens.token_ids, tokens.sentence_splits[ends], eod_id), tokens.sentence_splits + ended


def _cut(borders, segment, reuse, draw):
    """Yields the segments of a text: (start, end of A, start of B, end of B); A begins at start + `reuse`."""
    length, room = borders[-1], segment - reuse - _SPECIAL_TOKENS
    for start in range(0, length - segment + 1, reuse):
        begin = start + reuse
        # Sentences that end before the room is full, and the first that does not.
        first, last = bisect_right(borders, begin), bisect_left(borders, begin + room)
        follows = first < last and draw() >= 0.5
        a_end = borders[first + int(draw() * (last - first))] if first < last else borders[last]
        if follows:
            b_start, b_end = a_end, borders[last]
        else:
            least = max(1, room - (a_end - begin))
            position = int(draw() * (length - least))
            b_start = borders[bisect_right(borders, position) - 1]
            # The last token of the text is never reached: the original's targets are shifted by one.
            b_end = min(borders[bisect_left(borders, position + least)], length - 1)
        a_drop, b_drop = excess(a_end - begin, b_end - b_start, room)
        a_end, b_end = a_end - a_drop, b_end - b_drop
        if max(a_end, b_end) >= length:
            return
        yield start, a_end, b_start, b_end


def check_permutation(permutation, packing, sequence_length):
    """Raises ConfigError for a `PermutationConfig` that does not fit shards of the format xlnet.

    `packing` is that of the shards' manifest or `ShardsConfig.packing`.
    """
    if packing["format"] != "xlnet":
        return
    segments, reuse = packing["segments"], reuse_length(sequence_length, packing["segments"])
    if permutation.segments != segments:
        raise ConfigError(
            f"objective.permutation.segments={permutation.segments}, but the shards were packed with {segments} segments "
            f"a row; set objective.permutation.segments={segments}"
        )
    if not permutation.bidirectional:
        raise ConfigError(
            "objective.permutation.bidirectional=false, but every second row of shards of the format xlnet is in "
            "reverse order; set objective.permutation.bidirectional=true"
        )
    if permutation.permutation_size > reuse:
        raise ConfigError(
            f"objective.permutation.permutation_size={permutation.permutation_size} reaches beyond the {reuse} tokens of a "
            "segment that the next one remembers, which would show it what it predicts; set "
            f"objective.permutation.permutation_size={reuse}"
        )
