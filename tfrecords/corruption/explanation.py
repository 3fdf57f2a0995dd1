"""What a corruption did to each row, in words: `explain` of the corruptions, for `bert-tf inspect`."""

import dataclasses

import numpy as np

_UNITS = {"whole_word": "word", "ngram": "n-gram", "span": "span"}


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One predicted position.

    Attributes:
        position: int, in the row.
        token: str, what must be predicted.
        shown: str, what the model sees at this position; None where it sees nothing.
        why: str.
    """

    position: int
    token: str
    shown: str | None
    why: str


@dataclasses.dataclass(frozen=True)
class Explained:
    """What a corruption did to one row.

    Attributes:
        rule: str, how much is predicted.
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
    candidates, starts = corrupt.units(batch["token_ids"], batch["padding_mask"], corrupt.keys(batch, seed))
    candidates, units = candidates.numpy(), np.cumsum(starts.numpy(), axis=1)
    before, after = batch["token_ids"].numpy(), features["token_ids"].numpy()
    weights, positions = features["mask_weights"].numpy(), features["mask_positions"].numpy()
    for row in range(len(before)):
        predictions = []
        for position in positions[row][weights[row] > 0].tolist():
            was, now = (int(ids[row, position]) for ids in (before, after))
            why = "masked" if now == corrupt.mask_id else "kept" if now == was else "random token"
            unit = before[row][(units[row] == units[row, position]) & candidates[row]].tolist()
            if config.strategy != "token" and len(unit) > 1:
                why += f"; drawn with its {_UNITS[config.strategy]}: {' '.join(map(tokenizer.readable, unit))}"
            predictions.append(Prediction(position, tokenizer.readable(was), tokenizer.readable(now), why))
        unit = "tokens" if config.strategy == "token" else f"tokens in {_UNITS[config.strategy]}s"
        eligible = candidates[row].sum()
        rule = f"{len(predictions)} {unit}: {100 * config.rate:g} % of the {eligible} that may be predicted"
        if len(predictions) == config.predictions(length) < round(config.rate * eligible):
            rule += ", cut to max_predictions"
        notes = {}
        if config.static_duplicates is not None:
            epoch = int(batch["epoch"][row]) % config.static_duplicates
            notes["masks"] = f"static: set {epoch} of {config.static_duplicates}, which repeat"
        yield Explained(rule, predictions, notes)


def explain_permutation(corrupt, batch, features, tokenizer):
    """Explains `features`, which a `PermutationCorruption` made of `batch`; yields an `Explained` for each row."""
    config = corrupt.config
    window = config.window(batch["token_ids"].shape[1])
    values = {name: value.numpy() for name, value in features.items()}
    for row, order in enumerate(values["permutation_order"]):
        real = values["padding_mask"][row]
        tokens = [tokenizer.readable(i) for i in values["token_ids"][row][real].tolist()]
        positions = values["mask_positions"][row][values["mask_weights"][row] > 0].tolist()
        predictions = []
        for position in positions:
            seen = int(((order < order[position]) & real).sum())
            predictions.append(Prediction(position, tokens[position], None, f"predicted from {seen} tokens"))
        rule = f"{len(predictions)} tokens: {config.beta} of each {config.alpha}, in windows of {window}"
        in_order = sorted(positions, key=lambda position: order[position])
        notes = {"order": "the context, then " + " ".join(f"{tokens[i]}@{i}" for i in in_order)}
        if "backward" in values:
            notes["direction"] = "backward, from the last token to the first" if values["backward"][row] else "forward"
        yield Explained(rule, predictions, notes, tokens)
