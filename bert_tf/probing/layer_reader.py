"""The outputs of all layers of a model for the tokens of texts."""

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.probing.attention import with_attention
from bert_tf.tasks.features import with_hidden_states
from bert_tf.tasks.tagging.sequences import words_of_sentences


class LayerReader:
    """A model whose layers are read; its weights are left as they are.

    Args:
        encoder: an encoder or decoder. A decoder sees the text before a word alone.
        tokenizer: of its pretraining; it puts its special tokens around each sequence.
        batch_size: sequences computed together; those of like length.

    Example:
        dict(LayerReader(encoder, tokenizer).hidden_states([tokenizer.encode("a film")]))[0].shape  # (2, 2, 16)
    """

    def __init__(self, encoder, tokenizer, batch_size=32):
        self.encoder, self.tokenizer, self.batch_size = encoder, tokenizer, batch_size

    @property
    def room(self):
        """int, how many tokens of a text the model takes, without the special ones."""
        return self.encoder.config.max_positions - self.tokenizer.layout.special_tokens_per_sequence

    def hidden_states(self, sequences, progress=None):
        """Yields (index, float32 [layers + 1, T, H]) for each sequence of ids: hidden state 0 is the output of the embeddings.

        Args:
            sequences: lists of T ids without special tokens.
            progress: function(sequences done, all); None for nothing.

        Raises:
            ConfigError: a model that does not give the outputs of its layers.
        """
        before = len(self.tokenizer.layout.before_first)
        for index, states in self._outputs(with_hidden_states(self.encoder), "hidden_states", sequences, progress):
            yield index, states[:, before : before + len(sequences[index])]

    def attention(self, sequences, progress=None):
        """Yields (index, float32 [layers, heads, S, S]), the attention between all tokens, special ones too.

        Args:
            sequences, progress: as of `hidden_states`.

        Raises:
            ConfigError: a model that cannot give its attention.
        """
        special = self.tokenizer.layout.special_tokens_per_sequence
        for index, weights in self._outputs(with_attention(self.encoder), "attention_scores", sequences, progress):
            size = len(sequences[index]) + special
            yield index, weights[:, :, :size, :size]

    def pieces(self, sentences):
        """{index: for each word the list of its ids} of the sentences, lists of words, for which the model has room."""
        pieces = enumerate(words.pieces for words in words_of_sentences(self.tokenizer, sentences))
        return {index: of_sentence for index, of_sentence in pieces if sum(map(len, of_sentence)) <= self.room}

    def _outputs(self, model, name, sequences, progress):
        tokenizer, done = self.tokenizer, 0
        shapes = {"token_ids": ((None, None, *tokenizer.token_shape), "int32"), "segment_ids": ((None, None), "int32")}
        shapes["padding_mask"] = ((None, None), "bool")
        compute = as_graph(lambda *parts: model(dict(zip(shapes, parts)), training=False)[name], list(shapes.values()))
        order = np.argsort([len(ids) for ids in sequences], kind="stable")
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            parts = [np.array(sequences[i], np.int32).reshape(-1, *tokenizer.token_shape) for i in chosen]
            lengths = np.array([len(part) for part in parts], np.int32)
            ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(parts), lengths)
            width = max(lengths) + tokenizer.layout.special_tokens_per_sequence
            features = tokenizer.pack(ragged, sequence_length=width, dynamic=True)
            outputs = compute(*(ops.cast(features[key], dtype) for key, (_, dtype) in shapes.items()))
            states = np.stack(outputs).astype(np.float32)
            for row, index in enumerate(chosen):
                yield int(index), states[:, row]
            done += len(chosen)
            if progress is not None:
                progress(done, len(sequences))
