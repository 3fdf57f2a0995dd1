"""The outputs of all layers for the tokens of texts."""

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.tasks.features import with_hidden_states
from bert_tf.tasks.heads import INPUTS


def model_rows(tokenizer, sequences, batch_size):
    """Yields (indexes, features of the model) of batches; sequences of like length stand together.

    Args:
        tokenizer: puts its special tokens around each sequence.
        sequences: lists of ids without special tokens.
        batch_size: int.
    """
    order = np.argsort([len(ids) for ids in sequences], kind="stable")
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        parts = [np.array(sequences[i], np.int32).reshape(-1, *tokenizer.token_shape) for i in chosen]
        ragged = tf.RaggedTensor.from_row_lengths(
            np.concatenate(parts), np.array([len(part) for part in parts], np.int32)
        )
        width = max(map(len, parts)) + tokenizer.layout.special_tokens_per_sequence
        features = tokenizer.pack(ragged, sequence_length=width, dynamic=True)
        yield chosen, {name: features[name] for name in INPUTS}


def token_states(encoder, tokenizer, sequences, batch_size=32, progress=None):
    """Yields (index, float32 [layers + 1, T, H]) for each sequence of ids: hidden state 0 is the output of the embeddings.

    Args:
        encoder: an encoder or decoder that can give the outputs of its layers.
        tokenizer: of its pretraining.
        sequences: lists of T ids without special tokens.
        batch_size: sequences computed together.
        progress: function(sequences done, all); None for nothing.

    Raises:
        ConfigError: a model that does not give the outputs of its layers.
    """
    encoder, before, done = with_hidden_states(encoder), len(tokenizer.layout.before_first), 0
    compute = output_of(encoder, tokenizer, "hidden_states")
    for chosen, features in model_rows(tokenizer, sequences, batch_size):
        states = np.stack(compute(features)).astype(np.float32)
        for row, index in enumerate(chosen):
            yield int(index), states[:, row, before : before + len(sequences[index])]
        done += len(chosen)
        if progress is not None:
            progress(done, len(sequences))


def output_of(model, tokenizer, name):
    """function(features) -> the output `name` of a model, computed as one graph for rows of any length."""
    shapes = {"token_ids": ((None, None, *tokenizer.token_shape), "int32"), "segment_ids": ((None, None), "int32")}
    shapes["padding_mask"] = ((None, None), "bool")
    compute = as_graph(lambda *parts: model(dict(zip(shapes, parts)), training=False)[name], list(shapes.values()))
    return lambda features: compute(*(ops.cast(features[key], dtype) for key, (_, dtype) in shapes.items()))


def room(encoder, tokenizer):
    """How many tokens of a text the model takes, without the special ones."""
    return encoder.config.max_positions - tokenizer.layout.special_tokens_per_sequence
