"""What a corruption did to each row, and why, in words: `explain` of the corruptions, for `bert-tf inspect`."""

import dataclasses

import numpy as np

from tfrecords.corruption.random_numbers import ACTION_STREAM, random_bits

MASKED, RANDOM, KEPT = "[MASK]", "random", "kept"
_UNITS = {"whole_word": "word", "ngram": "n-gram", "span": "span"}


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One predicted position.

    Attributes:
        position: int, in the row.
        token: str, what must be predicted.
        shown: str, what the model sees at this position; None where it sees nothing.
        why: str, how it came to that.
        action, draw, unit: masking only: `MASKED`, `RANDOM` or `KEPT`; the random number in [0, 1) that
            decided it; the tokens (tuple of str) of the word, n-gram or span that was drawn, None where
            tokens are drawn one by one.
    """

    position: int
    token: str
    shown: str | None
    why: str
    action: str | None = None
    draw: float | None = None
    unit: tuple | None = None


@dataclasses.dataclass(frozen=True)
class Explained:
    """What a corruption did to one row.

    Attributes:
        rule: str, how much is predicted and why so much.
        predictions: list of `Prediction`, by position.
        notes: dict of name to str, further lines.
        tokens: list of str, the row as the model reads it where that is not the order of the shard; or None.
    """

    rule: str
    predictions: list
    notes: dict = dataclasses.field(default_factory=dict)
    tokens: list | None = None


def explain_masking(corrupt, batch, features, seed, tokenizer):
    """Explains `features`, which a `MaskedLMCorruption` made of `batch`; yields an `Explained` for each row."""
    config, length = corrupt.config, batch["token_ids"].shape[1]
    keys = corrupt.keys(batch, seed)
    tokens, starts = (x.numpy() for x in corrupt.units(batch["token_ids"], batch["padding_mask"], keys))
    number = np.cumsum(starts, axis=1)  # of each token's unit
    before, after = batch["token_ids"].numpy(), features["token_ids"].numpy()
    positions = features["mask_positions"]
    acting = features["span_left"] + 1 if config.strategy == "span" else positions
    draws = random_bits(keys, ACTION_STREAM, acting).numpy()
    eligible = tokens.sum(1).astype("int32")
    budgets = corrupt.budget(eligible, length, keys).numpy()
    for row, (places, weights) in enumerate(zip(positions.numpy(), features["mask_weights"].numpy())):
        predictions = []
        for rank, position in enumerate(places[weights > 0].tolist()):
            bits, unit = int(draws[row, rank]), None
            action = [KEPT, RANDOM, MASKED][sum(bits < bound for bound in corrupt.thresholds)]
            if config.strategy != "token":
                together = (number[row] == number[row, position]) & tokens[row]
                unit = tuple(map(tokenizer.id_to_token, before[row][together].tolist()))
            why = _why(action, bits / 2**32, unit, config)
            if config.strategy == "span":
                left, right = (int(features[name][row, rank]) for name in ("span_left", "span_right"))
                why += f", once for all from {left + 1} to {right - 1}"
            token, shown = (tokenizer.id_to_token(int(ids[row, position])) for ids in (before, after))
            predictions.append(Prediction(position, token, shown, why, action, bits / 2**32, unit))
        notes = {}
        if config.static_duplicates is not None:
            epoch = int(batch["epoch"][row]) % config.static_duplicates
            notes["masks"] = f"static: set {epoch} of {config.static_duplicates}, which repeat"
        yield Explained(_rule(config, len(predictions), int(budgets[row]), int(eligible[row]), length), predictions, notes)


def _why(action, draw, unit, config):
    bounds = config.mask_token_rate, config.mask_token_rate + config.random_token_rate
    why = {
        MASKED: f"masked: drew {draw:.3f}, below {bounds[0]:g}",
        RANDOM: f"random token: drew {draw:.3f}, {bounds[0]:g} to {bounds[1]:g}",
        KEPT: f"kept: drew {draw:.3f}, {bounds[1]:g} or above",
    }[action]
    if unit is not None and len(unit) > 1:
        why += f"; chosen with its {_UNITS[config.strategy]}: {' '.join(unit)}"
    return why


def _rule(config, predicted, budget, eligible, length):
    what = {
        "token": "exactly",
        "whole_word": "whole words of together at most",
        "ngram": f"n-grams of 1 to {config.max_ngram} words, together at most",
        "span": f"spans of 1 to {config.max_span} words, the last cut, together",
    }[config.strategy]
    of = "tokens" if config.predict_special else "that are not special"
    rule = f"{predicted} tokens: {what} {budget}, which is {100 * config.rate:g} % of the {eligible} {of}"
    cut = config.predictions(length) == budget < round(config.rate * eligible)
    return rule + (f", cut to max_predictions {budget}" if cut else "")


def explain_permutation(corrupt, batch, features, tokenizer):
    """Explains `features`, which a `PermutationCorruption` made of `batch`; yields an `Explained` for each row."""
    config = corrupt.config
    window = config.window(batch["token_ids"].shape[1])
    values = {name: value.numpy() for name, value in features.items()}
    for row, order in enumerate(values["permutation_order"]):
        real = values["padding_mask"][row]
        tokens = [tokenizer.id_to_token(i) for i in values["token_ids"][row][real].tolist()]
        positions = values["mask_positions"][row][values["mask_weights"][row] > 0].tolist()
        predictions = []
        for position in positions:
            rank, seen = int(order[position]) % (window + 1), int(((order < order[position]) & real).sum())
            why = f"number {rank} of the order in window {position // window}: predicted from {seen} tokens"
            predictions.append(Prediction(position, tokens[position], None, why))
        rule = (
            f"{len(predictions)} tokens: {config.beta} of each {config.alpha} that are not special, in windows of "
            f"{window}; {int(real.sum()) - len(predictions)} others are read"
        )
        in_order = sorted(positions, key=lambda position: order[position])
        notes = {"order": "the context, then " + " ".join(f"{tokens[i]}@{i}" for i in in_order)}
        if "backward" in values:
            notes["direction"] = "backward, from the last token to the first" if values["backward"][row] else "forward"
        yield Explained(rule, predictions, notes, tokens)
