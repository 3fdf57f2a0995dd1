"""The LSTM language model of Dai and Le 2015, "Semi-supervised Sequence Learning"."""

import dataclasses

import keras
from keras import ops

from bert_tf.backend import Dropout
from bert_tf.errors import ConfigError
from bert_tf.layers import LSTM, Embeddings, OutputLayer
from bert_tf.layers.gather import gather_positions
from bert_tf.models.backbone import policy
from bert_tf.models.decoder import Decoder
from bert_tf.models.lstm_lm_config import LstmLMConfig


@keras.saving.register_keras_serializable("bert_tf")
class LstmLM(Decoder):
    """A token table, LSTMs, and an output layer of its own: LM-LSTM, and SA-LSTM by another objective.

    Each text of a row starts from a state of zeros (`sequence_ids`). adversarial_text carries the state of a text from
    each segment of 400 tokens to the next, in a later update; here the segments stand in one row, which `config.unroll`
    cuts. There is no projection, and cells are not clipped.

    Args:
        config: an `LstmLMConfig`.
        pooler: see `Decoder`.
        output_hidden_states: whether the result holds all layers' outputs. Embeddings narrower than H are followed by
            zeros there, which change no cosine and no linear probe.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model.

    Call arguments, results: see `Decoder`; `prefix_mask` and `position_ids` are not read.

    Raises:
        ConfigError: attention scores are asked for, or hidden states where the embeddings are wider than H.

    Example:
        model = LstmLM(LstmLMConfig(100, hidden_size=16, embedding_size=8))
        outputs = model({"token_ids": np.array([[5, 6, 7]])})
        model.output_logits(outputs["sequence_output"])  # [1, 3, 100]: what comes after each token

        cache = model.empty_cache(batch=1, length=3)  # the state of the LSTMs, whatever the length
        for position, token in enumerate([5, 6, 7]):
            x, cache = model.decode(np.array([[token]]), cache, position)
        model.output_logits(x)  # [1, 1, 100]

    Source: Dai and Le 2015 (arXiv:1511.01432); tensorflow/models research/adversarial_text `layers.py`.
    """

    config_class = LstmLMConfig

    def __init__(
        self, config, dtype=None, name="lstm_lm", output_hidden_states=False, output_attention_scores=False, **options
    ):
        dtype = policy(dtype)
        if output_attention_scores:
            raise ConfigError("an LSTM has no attention; leave out output_attention_scores")
        if output_hidden_states and config.embedding_size > config.hidden_size:
            raise ConfigError(
                f"task.features and the probes read hidden states, and the embeddings, embedding_size={config.embedding_size}, "
                f"do not fit into states of hidden_size={config.hidden_size}; use a model whose embeddings are not wider"
            )
        embeddings = Embeddings(
            vocabulary_size=config.vocabulary_size,
            size=config.embedding_size,
            max_positions=None,
            num_segments=0,
            dropout=0.0,
            layer_norm_epsilon=None,
            initializer_range=config.embedding_initializer_range,
            dtype=dtype,
            name="embeddings",
        )
        settings = {"forget_bias": config.forget_bias, "unroll": config.unroll, "dtype": dtype}
        blocks = [LSTM(config.hidden_size, **settings, name=f"lstm_layer_{i}") for i in range(config.num_layers)]
        dropouts = [Dropout(config.dropout, dtype=dtype, name=f"lstm_dropout_{i}") for i in range(config.num_layers)]
        row_dropout = RowDropout(config.embedding_dropout, dtype=dtype, name="row_dropout")
        layers = LstmLayers(embeddings, row_dropout, blocks, dropouts)
        super().__init__(config, layers, dtype, name, output_hidden_states=output_hidden_states, **options)
        self.output_layer = None
        if not config.tied:
            sizes = config.vocabulary_size, config.hidden_size
            self.output_layer = OutputLayer(*sizes, config.output_bias, dtype=dtype, name="output")

    @property
    def output_table(self):
        return super().output_table if self.output_layer is None else self.output_layer.kernel

    @property
    def output_bias(self):
        return None if self.output_layer is None else self.output_layer.bias

    def empty_cache(self, batch, length):
        """The state of the LSTMs before the first token: a pair (c, h) of zeros [batch, H] for each; see `Decoder.decode`."""
        zeros = ops.zeros((batch, self.config.hidden_size), dtype=self.compute_dtype)
        return [(zeros, zeros) for _ in self.blocks()]


@keras.saving.register_keras_serializable("bert_tf")
class RowDropout(keras.layers.Layer):
    """Dropout of the same numbers at all positions of a row: [B, S, E] -> [B, S, E].

    adversarial_text `layers.py`, `Embedding`, with `noise_shape`; Gal and Ghahramani 2016.

    Args:
        rate: of the numbers that are dropped.

    Example:
        RowDropout(0.5)(np.ones((2, 3, 4), "float32"), training=True)  # three equal vectors in each row
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.dropout = Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def call(self, x, training=False):
        if not training or self.dropout.rate == 0:
            return x
        return x * self.dropout(ops.ones_like(x[:, :1]), training=training)


@dataclasses.dataclass(frozen=True)
class LstmLayers:
    """The layers of an LSTM language model, in the order of their calls; as `DecoderLayers`.

    Args:
        embeddings: from ids [B, S] to [B, S, E].
        row_dropout: a `RowDropout` of the embeddings.
        blocks: `LSTM`s, bottom first.
        dropouts: a `Dropout` after each.
    """

    embeddings: keras.Layer
    row_dropout: keras.Layer
    blocks: list
    dropouts: list

    def encode(self, inputs, positions=None, return_attention_scores=False, training=None):
        """See `DecoderLayers.encode`."""
        x = self.row_dropout(self.embeddings(inputs["token_ids"], training=training), training=training)
        missing = self.blocks[-1].width - x.shape[-1]
        hidden_states = [ops.pad(x, [[0, 0], [0, 0], [0, missing]]) if missing > 0 else x]
        where = {"padding_mask": inputs["padding_mask"], "sequence_ids": inputs["sequence_ids"]}
        for block, dropout in zip(self.blocks, self.dropouts, strict=True):
            x, _ = block(x, **where)
            x = dropout(x, training=training)
            hidden_states.append(x)
        if positions is not None:
            hidden_states[-1] = gather_positions(hidden_states[-1], positions)
        return hidden_states, []

    def decode(self, token_ids, cache, cache_position, padding_mask, position_ids, prefix_mask=None):
        """See `Decoder.decode`; the cache is the state of each LSTM."""
        if padding_mask is not None:
            columns = ops.arange(ops.shape(token_ids)[1], dtype="int32") + cache_position
            padding_mask = ops.take(padding_mask, columns, axis=1)
        x, states = self.embeddings(token_ids), []
        for block, state in zip(self.blocks, cache, strict=True):
            x, state = block(x, padding_mask=padding_mask, state=state)
            states.append(state)
        return x, states
