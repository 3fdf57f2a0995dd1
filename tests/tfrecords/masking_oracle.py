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


def units_of(ids, eligible, key, tokenizer, config):
    """The places of the tokens of each unit, in order."""
    continues = ~tokenizer.starts_word
    words = []  # of places; a special token is one, too
    for i in range(len(ids)):
        inside = i in eligible and i - 1 in eligible and continues[ids[i]] and config.strategy != "token"
        if inside:
            words[-1].append(i)
        else:
            words.append([i])
    if config.strategy in ("ngram", "span"):
        if config.strategy == "ngram":
            weights = [1 / n for n in range(1, config.max_ngram + 1)]
        else:
            weights = [(1 - config.span_p) ** n for n in range(config.max_span)]
        units, k = [], 0
        while words:
            draw = bits(key, 4, k) / 2**32
            size = 1 + sum(sum(weights[:n]) / sum(weights) <= draw for n in range(1, len(weights)))
            units.append(words[:size])
            words, k = words[size:], k + 1
        # Cut at special tokens.
        words = []
        for unit in units:
            for number, word in enumerate(unit):
                if number and word[0] in eligible and words[-1][-1] in eligible:
                    words[-1] += word
                else:
                    words.append(list(word))
    return [word for word in words if word[0] in eligible]


def select(units, budget, most, key, length, config):
    """The places chosen, and those whose action number each uses."""
    if config.strategy == "token":
        count = draws_made(most, length, 1)
        drawn = [bits(key, 0, i) * (max(u[0] for u in units) + 1) >> 32 for i in range(count)]
        eligible = [u[0] for u in units]
        chosen = [i for i in dict.fromkeys(drawn) if i in eligible][:budget]
        low = 2 ** math.ceil(math.log2(length)) - 1
        others = [i for i in eligible if i not in chosen]
        others.sort(key=lambda i: -((bits(key, 3, i) >> 1) & ~low | i))
        chosen += others[: budget - len(chosen)]
        return sorted(chosen), {i: i for i in chosen}
    count = draws_made(most, length, 2)
    order = list(dict.fromkeys(bits(key, 0, i) * len(units) >> 32 for i in range(count)))
    order = order[: most + 4]
    if config.strategy != "span":
        chosen = []
        for number in order:
            if len(chosen) + len(units[number]) <= budget:
                chosen += units[number]
        return sorted(chosen), {i: i for i in chosen}
    if sum(len(units[number]) for number in order) < budget:
        order = sorted(range(len(units)), key=lambda number: bits(key, 3, number))
    chosen = []
    for number in order:
        taken = min(budget - len(chosen), len(units[number]))
        at_the_back = bits(key, 5, number) >> 31
        chosen += units[number][len(units[number]) - taken :] if at_the_back else units[number][:taken]
    chosen.sort()
    begin = {}
    for i in chosen:
        begin[i] = begin.get(i - 1, i)
    return chosen, begin


def mask_example(ids, padding_mask, key, tokenizer, config, random_ids):
    """The corrupted ids, the sorted predicted positions, and the begin of the span of each."""
    length = len(ids)
    most = min(config.max_predictions or math.ceil(config.rate * length), length)
    special = set(tokenizer.special_ids)
    if config.predict_special:
        special = set()
    elif config.predict_unknown:
        special -= {tokenizer.unk_id}
    eligible = {i for i in range(length) if padding_mask[i] and ids[i] not in special}
    if not eligible:
        return ids.copy(), [], {}
    wanted = config.rate * len(eligible)
    budget = {
        "nearest": max(1, round(wanted)),
        "up": math.ceil(wanted - 1e-9),
        "random": math.floor(wanted + 1e-9) + (bits(key, 6, 0) / 2**32 < wanted - math.floor(wanted + 1e-9)),
    }[config.rounding]
    budget = min(most, budget)
    units = units_of(ids, eligible, key, tokenizer, config)
    chosen, begin = select(units, budget, most, key, length, config)
    corrupted = ids.copy()
    for i in chosen:
        action = bits(key, 1, begin[i]) / 2**32
        if action < config.mask_token_rate:
            corrupted[i] = tokenizer.mask_id
        elif action < config.mask_token_rate + config.random_token_rate:
            corrupted[i] = random_ids[bits(key, 2, i) * len(random_ids) >> 32]
    return corrupted, chosen, begin


def mask_batch(batch, seed, tokenizer, config, random_ids=None):
    """token_ids, mask_positions, mask_ids and mask_weights of a batch of NumPy arrays; for spans their sides."""
    random_ids = tokenizer.random_ids if random_ids is None else random_ids
    ids = batch["token_ids"]
    most = config.max_predictions or math.ceil(config.rate * ids.shape[1])
    corrupted = ids.copy()
    positions, originals, left, right = np.zeros((4, len(ids), most), np.int32)
    weights, beside = np.zeros((2, len(ids), most), np.float32)
    frame = set(tokenizer.special_ids) - {tokenizer.unk_id}
    for b in range(len(ids)):
        epoch = int(batch["epoch"][b])
        if config.static_duplicates:
            epoch %= config.static_duplicates
        key = example_key(seed, epoch, int(batch["example_index"][b]))
        corrupted[b], chosen, begin = mask_example(
            ids[b], batch["padding_mask"][b], key, tokenizer, config, random_ids
        )
        positions[b, : len(chosen)] = chosen
        originals[b, : len(chosen)] = ids[b, chosen]
        weights[b, : len(chosen)] = 1
        for rank, i in enumerate(chosen):
            left[b, rank] = begin[i] - 1
            right[b, rank] = max(j for j in chosen if begin[j] == begin[i]) + 1
            beside[b, rank] = not frame & {ids[b, left[b, rank]], ids[b, right[b, rank]]}
    expected = dict(
        token_ids=corrupted, mask_positions=positions, mask_ids=originals, mask_weights=weights
    )
    return expected | (
        dict(span_left=left, span_right=right, span_weights=beside) if config.strategy == "span" else {}
    )
