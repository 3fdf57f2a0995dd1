"""Masking once more, one example at a time in NumPy and Python integers."""

import math

import numpy as np

WORD = 0xFFFFFFFF


def mix(value, key):
    value ^= value >> 16
    value = (value * 0x85EBCA6B & WORD) ^ key
    value ^= value >> 13
    value = value * 0xC2B2AE35 & WORD
    return value ^ value >> 16


def splitmix64(value):
    value = value + 0x9E3779B97F4A7C15 & 2**64 - 1
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    value = (value ^ value >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return value ^ value >> 31


def example_key(seed, epoch, index):
    key = 0
    for number in (seed, epoch, index):
        key = splitmix64(key ^ number & 2**64 - 1)
    return key >> 32, key & WORD


def bits(key, stream, position):
    return mix(key[0] + (position + stream * 65536) * 0x9E3779B9 & WORD, key[1])


def draws_made(most, length, times):
    """How many positions are drawn with replacement; in rounds of equal size, at most 62 each."""
    mean = sum(length / (length - i) for i in range(most))
    variance = sum(i * length / (length - i) ** 2 for i in range(most))
    count = times * min(math.ceil(mean + 6 * math.sqrt(variance)), 2 * length)
    rounds = math.ceil(count / 62)
    return rounds * math.ceil(count / rounds)


def mask_example(ids, padding_mask, key, tokenizer, config):
    """The corrupted ids, and the sorted predicted positions, of one sequence."""
    length = len(ids)
    most = min(config.max_predictions or math.ceil(config.rate * length), length)
    special, continues = set(tokenizer.special_ids), tokenizer.is_continuation
    eligible = [i for i in range(length) if padding_mask[i] and ids[i] not in special]
    if not eligible:
        return ids.copy(), []
    budget = min(most, max(1, round(config.rate * len(eligible))))

    words = {}
    for i in eligible:
        if config.whole_word and continues[ids[i]] and i - 1 in eligible:
            words[begin].append(i)
        else:
            begin = i
            words[begin] = [i]
    count = draws_made(most, length, 2 if config.whole_word else 1)
    drawn = [bits(key, 0, i) * (max(words) + 1) >> 32 for i in range(count)]
    order = [i for i in dict.fromkeys(drawn) if i in words]
    chosen = []
    if config.whole_word:
        for i in order[: most + 4]:
            if len(chosen) + len(words[i]) <= budget:
                chosen += words[i]
    else:
        chosen = order[:budget]
        low = 2 ** math.ceil(math.log2(length)) - 1
        others = [i for i in eligible if i not in chosen]
        others.sort(key=lambda i: -((bits(key, 3, i) >> 1) & ~low | i))
        chosen += others[: budget - len(chosen)]

    corrupted = ids.copy()
    for i in chosen:
        action = bits(key, 1, i) / 2**32
        if action < config.mask_probability:
            corrupted[i] = tokenizer.mask_id
        elif action < config.mask_probability + config.random_probability:
            draw = bits(key, 2, i) * len(tokenizer.random_ids) >> 32
            corrupted[i] = tokenizer.random_ids[draw]
    return corrupted, sorted(chosen)


def mask_batch(batch, seed, tokenizer, config):
    """token_ids, mask_positions, mask_ids and mask_weights of a batch of NumPy arrays."""
    ids = batch["token_ids"]
    most = config.max_predictions or math.ceil(config.rate * ids.shape[1])
    corrupted = ids.copy()
    positions, originals = np.zeros((2, len(ids), most), np.int32)
    weights = np.zeros((len(ids), most), np.float32)
    for b in range(len(ids)):
        key = example_key(seed, int(batch["epoch"][b]), int(batch["example_index"][b]))
        corrupted[b], chosen = mask_example(
            ids[b], batch["padding_mask"][b], key, tokenizer, config
        )
        positions[b, : len(chosen)] = chosen
        originals[b, : len(chosen)] = ids[b, chosen]
        weights[b, : len(chosen)] = 1
    return dict(
        token_ids=corrupted, mask_positions=positions, mask_ids=originals, mask_weights=weights
    )
