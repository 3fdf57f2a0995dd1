"""What an encoder-decoder makes of a text token by token, beside what it makes of the whole."""

import numpy as np


def cached_and_whole(model):
    """Both [2, 12, H]: five tokens at once and the others one by one, the second source with padding."""
    generator, size = np.random.default_rng(0), model.config.vocabulary_size
    source, mask = generator.integers(2, size, (2, 7)).astype("int32"), np.arange(7) < np.array([[7], [4]])
    written = generator.integers(2, size, (2, 12)).astype("int32")
    whole = model({"token_ids": source, "padding_mask": mask, "decoder_token_ids": written})["sequence_output"]
    sources, cache = model.sources(model.encode(source, mask)), model.empty_cache(2, 12)
    first, cache = model.decode(written[:, :5], cache, 0, sources, mask)
    rows = [first]
    for position in range(5, 12):
        x, cache = model.decode(written[:, position : position + 1], cache, position, sources, mask)
        rows.append(x)
    return np.concatenate(rows, axis=1), whole
