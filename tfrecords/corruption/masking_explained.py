"""Why masked language modelling masked what it did, in words."""

import dataclasses

import numpy as np

from tfrecords.corruption.explanation import Explained, Prediction
from tfrecords.corruption.random_numbers import ACTION_STREAM, random_bits

MASKED, RANDOM, KEPT = "[MASK]", "random", "kept"
_UNITS = {"whole_word": "word", "ngram": "n-gram", "span": "span"}


@dataclasses.dataclass(frozen=True)
class MaskedPrediction(Prediction):
    """A prediction of masked language modelling.

    Attributes:
        action: "[MASK]", "random" or "kept".
        draw: float in [0, 1), the random number that decided the action.
        unit: tuple of str, the tokens it was chosen with, those of the whole word, n-gram or
            span; None where tokens are chosen one by one.
    """

    action: str
    draw: float
    unit: tuple | None


def explain(corrupt, batch, features, seed, tokenizer):
    """What `MaskedLMCorruption.explain` yields."""
    config = corrupt.config
    keys = corrupt.keys(batch, seed)
    length = batch["token_ids"].shape[1]
    tokens, starts = (x.numpy() for x in corrupt.units(batch["token_ids"], batch["padding_mask"], keys))
    number = np.cumsum(starts, axis=1)  # of each token's unit
    before, after = batch["token_ids"].numpy(), features["token_ids"].numpy()
    positions = features["mask_positions"]
    acting = features["span_left"] + 1 if config.unit == "span" else positions
    draws = random_bits(keys, ACTION_STREAM, acting).numpy()
    eligible = tokens.sum(1).astype("int32")
    budgets = corrupt.budget(eligible, length, keys).numpy()
    for row, (places, weights) in enumerate(zip(positions.numpy(), features["mask_weights"].numpy())):
        predictions = []
        for rank in range(int(weights.sum())):
            place, bits = int(places[rank]), int(draws[row, rank])
            action = [KEPT, RANDOM, MASKED][sum(bits < bound for bound in corrupt.thresholds)]
            unit = None
            if config.unit != "token":
                together = (number[row] == number[row, place]) & tokens[row]
                unit = tuple(tokenizer.id_to_token(i) for i in before[row][together].tolist())
            why = _why(action, bits / 2**32, unit, config)
            if config.unit == "span":
                sides = [int(features[name][row, rank]) for name in ("span_left", "span_right")]
                why += ", once for all from {} to {}".format(sides[0] + 1, sides[1] - 1)
            predictions.append(
                MaskedPrediction(
                    position=place,
                    token=tokenizer.id_to_token(int(before[row, place])),
                    shown=tokenizer.id_to_token(int(after[row, place])),
                    why=why,
                    action=action,
                    draw=bits / 2**32,
                    unit=unit,
                )
            )
        rule = _rule(config, len(predictions), int(budgets[row]), int(eligible[row]), length)
        notes = {}
        if config.static_duplicates is not None:
            epoch = int(batch["epoch"][row]) % config.static_duplicates
            notes["masks"] = f"static: set {epoch} of {config.static_duplicates}, which repeat"
        yield Explained(rule, predictions, notes)


def _why(action, draw, unit, config):
    bounds = config.mask_probability, config.mask_probability + config.random_probability
    why = {
        MASKED: f"masked: drew {draw:.3f}, below {bounds[0]:g}",
        RANDOM: f"random token: drew {draw:.3f}, {bounds[0]:g} to {bounds[1]:g}",
        KEPT: f"kept: drew {draw:.3f}, {bounds[1]:g} or above",
    }[action]
    if unit is not None and len(unit) > 1:
        why += f"; chosen with its {_UNITS[config.unit]}: {' '.join(unit)}"
    return why


def _rule(config, predicted, budget, eligible, length):
    what = {
        "token": "exactly",
        "whole_word": "whole words of together at most",
        "ngram": f"n-grams of 1 to {config.max_ngram} words, together at most",
        "span": f"spans of 1 to {config.max_span} words, the last cut, together",
    }[config.unit]
    rule = (
        f"{predicted} tokens: {what} {budget}, which is {100 * config.rate:g} % of the "
        f"{eligible} {'tokens' if config.predict_special else 'that are not special'}"
    )
    if config.predictions(length) == budget < round(config.rate * eligible):
        rule += f", cut to max_predictions {budget}"
    return rule
