"""What permutation language modelling predicts in a row, and from what, in words."""

from tfrecords.corruption.explanation import Explained, Prediction


def explain(corrupt, batch, features, seed, tokenizer):
    """What `PermutationCorruption.explain` yields."""
    config, length = corrupt.config, batch["token_ids"].shape[1]
    window = config.window(length)
    values = {name: value.numpy() for name, value in features.items()}
    for row, order in enumerate(values["permutation_order"]):
        real = values["padding_mask"][row]
        tokens = [tokenizer.id_to_token(i) for i in values["token_ids"][row][real].tolist()]
        places = values["mask_positions"][row][values["mask_weights"][row] > 0].tolist()
        predictions = []
        for place in places:
            seen = int(((order < order[place]) & real).sum())
            rank = int(order[place]) % (window + 1)
            predictions.append(
                Prediction(
                    position=place,
                    token=tokens[place],
                    shown=None,
                    why=f"number {rank} of the order in window {place // window}: predicted from {seen} tokens",
                )
            )
        rule = (
            f"{len(predictions)} tokens: {config.beta} of each {config.alpha} that are not special, in windows of "
            f"{window}; {int(real.sum()) - len(predictions)} others are read"
        )
        in_order = sorted(places, key=lambda place: order[place])
        notes = {"order": "the context, then " + " ".join(f"{tokens[place]}@{place}" for place in in_order)}
        if "backward" in values:
            notes["direction"] = "backward, from the last token to the first" if values["backward"][row] else "forward"
        yield Explained(rule, predictions, notes, tokens)
