"""What an encoder-decoder makes of golden texts, and of a text token by token, beside what it makes of the whole."""

import keras
import numpy as np
import pytest
from keras import ops
from model_goldens import assert_states, integers
from numeric import relative_error


def features(golden):
    targets = golden["target_ids"].astype("int32")
    inputs = integers(golden, "token_ids") | {"padding_mask": golden["padding_mask"]}
    return inputs | {"decoder_token_ids": np.pad(targets, [(0, 0), (1, 0)])[:, :-1]}


def loss_of(model, golden):
    """(outputs, logits, the mean loss)."""
    outputs = model(features(golden))
    logits = model.output_logits(outputs["sequence_output"])
    targets, weights = golden["target_ids"].astype("int32"), golden["target_weights"].astype("float32")
    losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    return outputs, logits, ops.sum(losses * weights) / weights.sum()


def assert_states_logits_and_loss(model, golden):
    outputs, logits, loss = loss_of(model, golden)
    source, real = golden["padding_mask"], golden["target_weights"]
    for name, tokens in (("encoder_hidden_states", source), ("hidden_states", real)):
        assert_states(outputs[name], golden[name], tokens)
    assert relative_error(np.asarray(logits)[real], golden["logits"][real]) < 1e-5
    assert float(loss) == pytest.approx(float(golden["loss"]), rel=1e-5)


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
