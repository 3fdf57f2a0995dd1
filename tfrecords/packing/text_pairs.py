"""Pairs of source and target into rows: one a row, or as many as fit."""

#: What `text_pair_rows` counts beside what all formats count.
PAIR_COUNTS = ("pairs", "truncated_sources", "truncated_targets")


def text_pair_rows(tokens, end_id, source_length, target_length, packed, counts):
    """Yields rows: (list of ids, list of lengths), see `tfrecords.schema`.

    A text that is too long is cut before the token that ends it, which no text loses. Packing is greedy and in order,
    as seqio's: a row ends where the source or the target of the next pair does not fit.

    Args:
        tokens: `Tokens` of documents of two pieces each, source and target.
        end_id: the token that ends a text.
        source_length, target_length: the most tokens of the sources and of the targets of a row, those that end them
            included.
        packed: whether a row has several pairs.
        counts: dict, to which the names of `PAIR_COUNTS`, "examples", "example_tokens", "two_segments" and
            "truncated_tokens" are added.
    """
    counts |= dict.fromkeys(PAIR_COUNTS, 0)
    ids, splits = tokens.token_ids.tolist(), tokens.sentence_splits.tolist()
    sources, targets, lengths = [], [], []

    def finished():
        counts["examples"] += 1
        counts["two_segments"] += 1
        counts["example_tokens"] += len(sources) + len(targets)
        return sources + targets, lengths

    for begin, middle, end in zip(splits[:-1:2], splits[1::2], splits[2::2]):
        source = [*ids[begin : min(middle, begin + source_length - 1)], end_id]
        target = [*ids[middle : min(end, middle + target_length - 1)], end_id]
        cut_source, cut_target = middle - begin - len(source) + 1, end - middle - len(target) + 1
        counts["pairs"] += 1
        counts["truncated_sources"] += cut_source > 0
        counts["truncated_targets"] += cut_target > 0
        counts["truncated_tokens"] += cut_source + cut_target
        full = len(sources) + len(source) > source_length or len(targets) + len(target) > target_length
        if sources and (full or not packed):
            yield finished()
            sources, targets, lengths = [], [], []
        sources, targets, lengths = sources + source, targets + target, [*lengths, len(source), len(target)]
    if sources:
        yield finished()
