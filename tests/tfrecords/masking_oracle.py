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


def example_key(seed, epoch, index):
    first, second = 0x243F6A88, 0x85A308D3
    for number in (seed, epoch, index):
        low, high = number & WORD, number >> 32 & WORD
        first = mix((first ^ low) + 0x9E3779B9 & WORD, second)
        second = mix((second ^ high) + 0x9E3779B9 & WORD, first)
        first = mix(first + 0x9E3779B9 & WORD, second)
    return first, second


def bits(key, stream, position):
    return mix(key[0] + (position + stream * 65536) * 0x9E3779B9 & WORD, key[1])


def mask_example(ids, padding_mask, key, tokenizer, config):
    """The corrupted ids, and the sorted predicted positions, of one sequence."""
    length = len(ids)
    most = config.max_predictions or math.ceil(config.rate * length)
    special, continues = set(tokenizer.special_ids), tokenizer.is_continuation
    eligible = [i for i in range(length) if padding_mask[i] and ids[i] not in special]
    if not eligible:
        return ids.copy(), []
    budget = min(most, max(1, round(config.rate * len(eligible))))
    low = 2 ** math.ceil(math.log2(length)) - 1

    def score(position):
        return (bits(key, 0, position) >> 1) & ~low | position

    words = []
    for i in eligible:
        if config.whole_word and continues[ids[i]] and i - 1 in eligible:
            words[-1].append(i)
        else:
            words.append([i])
    words.sort(key=lambda word: -score(word[0]))
    chosen = []
    for word in words[: most + 4]:
        if len(chosen) + len(word) <= budget:
            chosen += word

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
