"""Packing in any format, and the counts of its sequences."""

import numpy as np

from tfrecords.config import PAIR_FORMATS, SINGLE_FORMATS
from tfrecords.packing.electra import electra_examples, reorder
from tfrecords.packing.pairs import segment_pairs, sentence_pairs
from tfrecords.packing.single_segments import doc_sentences, full_sentences, insert_separators, token_blocks
from tfrecords.packing.spans import ENDS, FILLS
from tfrecords.schema import EXCHANGED, IN_ORDER, NEXT, NO_PAIR, RANDOM_NEXT

#: What `count` counts.
COUNTS = (
    "examples", "example_tokens", "truncated_tokens", "next", "random_next", "random_next_ends", "random_next_fills",
    "in_order", "exchanged", "without_pair", "two_segments", "lone_segments",
)  # fmt: skip


def pack(tokens, tokenizer, config, seed):
    """Packs the sentences of a chunk (`Tokens`) once, in any format except xlnet.

    Returns:
        (token_ids, Spans): the ids, with separators or in another order where the format needs it,
        and the sequences as `spans.Spans` of them.
    """
    token_ids, *splits = tokens
    layout = tokenizer.layout
    if config.format in PAIR_FORMATS:
        room = config.sequence_length - layout.special_tokens_per_pair
        if config.format == "sentence_pair":
            return token_ids, sentence_pairs(*splits, room, seed, config.label_task)
        return token_ids, segment_pairs(*splits, room, seed, config.short_sequences, config.label_task)
    if config.format == "electra":
        spans, sentences = electra_examples(*splits, config.sequence_length, layout, seed, config.short_sequences)
        return reorder(token_ids, splits[0], sentences), spans
    room = config.sequence_length - layout.special_tokens_per_sequence
    if config.format == "doc_sentences":
        return token_ids, doc_sentences(*splits, room)
    across_documents = token_blocks if config.format == "token_blocks" else full_sentences
    spans, separators = across_documents(*splits, room)
    return insert_separators(token_ids, separators, tokenizer.sep_id), spans


def count(spans, layout, config, counts):
    """Adds the sequences that `pack` made to `counts`, a dict with all names of `COUNTS`."""

    def number(flags):
        return int(np.count_nonzero(flags))

    first, second = spans.first_end - spans.first_start, spans.second_end - spans.second_start
    pairs, singles = number(second), number(second == 0)
    special = pairs * layout.special_tokens_per_pair + singles * layout.special_tokens_per_sequence
    numbers = {
        "examples": len(second),
        "example_tokens": int((first + second).sum()) + special,
        "two_segments": pairs,
        "truncated_tokens": int(spans.truncated.sum()),
        "without_pair": number(spans.labels == NO_PAIR),
        "lone_segments": 0 if config.format in SINGLE_FORMATS else singles,
    }
    if config.label_task == "nsp":
        is_random = spans.labels == RANDOM_NEXT
        numbers |= {
            "next": number(spans.labels == NEXT),
            "random_next": number(is_random),
            "random_next_ends": number(is_random & (spans.lone == ENDS)),
            "random_next_fills": number(is_random & (spans.lone == FILLS)),
        }
    elif config.label_task == "sop":
        numbers |= {"in_order": number(spans.labels == IN_ORDER), "exchanged": number(spans.labels == EXCHANGED)}
    for name, value in numbers.items():
        counts[name] += value
