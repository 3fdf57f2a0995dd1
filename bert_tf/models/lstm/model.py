"""The LSTM language model of Dai and Le 2015, "Semi-supervised Sequence Learning".

A bidirectional LSTM (Graves and Schmidhuber 2005) above a token table: the encoder before pretrained transformers.

Its layers are Keras's `LSTM` (Hochreiter and Schmidhuber 1997, with a forget gate). `encoder.family: bilstm` of
`bert-tf finetune` puts it above word vectors.
"""

import dataclasses
from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dropout, Layer
from bert_tf.errors import ConfigError
from bert_tf.layers import LSTM, BiLstm, EndsOfDirections, OutputLayer
from bert_tf.layers.parts import gather_positions
from bert_tf.models.backbone import policy
from bert_tf.models.decoder import Decoder
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.lstm.config import BiLstmConfig, LstmLMConfig
from bert_tf.models.stack import StackOutputs, token_embeddings
from bert_tf.types import Options, Policy, Tensor, Tensors


@keras.saving.register_keras_serializable("bert_tf")
class LstmLM(Decoder):
    """A token table, LSTMs, and an output layer of its own: LM-LSTM, and SA-LSTM by another objective.

    Each text of a row starts from a state of zeros (`sequence_ids`). adversarial_text carries the state of a text from
    each segment of 400 tokens to the next, in a later update; here the segments stand in one row, which `config.unroll`
    cuts. There is no projection, and cells are not clipped.

    Args, call arguments, results: see `Decoder`, with an `LstmLMConfig`; `prefix_mask` and `position_ids` are not read.
    Embeddings narrower than H are followed by zeros in the `hidden_states`, which change no cosine and no linear probe.

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

    def __init__(self, config: LstmLMConfig, **options: Options) -> None:
        if options.get("output_attention_scores"):
            raise ConfigError("an LSTM has no attention; leave out output_attention_scores")
        if options.get("output_hidden_states") and config.embedding_size > config.hidden_size:
            raise ConfigError(
                f"task.frozen_layers and the probes read hidden states, and the embeddings, embedding_size={config.embedding_size}, "
                f"do not fit into states of hidden_size={config.hidden_size}; use a model whose embeddings are not wider"
            )
        super().__init__(config, **options)

    @staticmethod
    def make_stack(config: LstmLMConfig, dtype: Policy) -> Any:
        settings = {"forget_bias": config.forget_bias, "unroll": config.unroll, "dtype": dtype}
        return LstmStack(
            embeddings=token_embeddings(
                config,
                dtype,
                size=config.embedding_size,
                dropout=0.0,
                initializer_range=config.embedding_initializer_range,
            ),
            row_dropout=RowDropout(config.embedding_dropout, dtype=dtype, name="row_dropout"),
            blocks=[LSTM(config.hidden_size, **settings, name=f"lstm_layer_{i}") for i in range(config.num_layers)],
            dropouts=[Dropout(config.dropout, dtype=dtype, name=f"lstm_dropout_{i}") for i in range(config.num_layers)],
        )

    @staticmethod
    def make_output(config: LstmLMConfig, dtype: Policy) -> OutputLayer | None:
        if config.tied:
            return None
        return OutputLayer(config.vocabulary_size, config.hidden_size, config.output_bias, dtype=dtype, name="output")


@keras.saving.register_keras_serializable("bert_tf")
class RowDropout(Layer):
    """Dropout of the same numbers at all positions of a row: [B, S, E] -> [B, S, E].

    adversarial_text `layers.py`, `Embedding`, with `noise_shape`; Gal and Ghahramani 2016.

    Args:
        rate: of the numbers that are dropped.

    Example:
        RowDropout(0.5)(np.ones((2, 3, 4), "float32"), training=True)  # three equal vectors in each row
    """

    def __init__(self, rate: float, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.dropout = Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or self.dropout.rate == 0:
            return x
        return x * self.dropout(ops.ones_like(x[:, :1]), training=training)


@dataclasses.dataclass(frozen=True)
class LstmStack:
    """The layers of an LSTM language model, in the order of their calls; arguments and results as of `Stack`.

    Its cache is the state (c, h) of each LSTM, [B, H], whatever the length.

    Args:
        embeddings: from ids [B, S] to [B, S, E].
        row_dropout: a `RowDropout` of the embeddings.
        blocks: `LSTM`s, bottom first.
        dropouts: a `Dropout` after each.
    """

    embeddings: keras.Layer
    row_dropout: keras.Layer
    blocks: list[keras.Layer]
    dropouts: list[keras.Layer]

    def __call__(
        self,
        inputs: Tensors,
        positions: Tensor = None,
        cache: Tensor = None,
        cache_position: Tensor = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> StackOutputs:
        x = self.row_dropout(self.embeddings(inputs["token_ids"], training=training), training=training)
        missing = self.blocks[-1].width - x.shape[-1]
        hidden_states, states = [ops.pad(x, [[0, 0], [0, 0], [0, missing]]) if missing > 0 else x], []
        where = {name: inputs.get(name) for name in ("padding_mask", "sequence_ids")}
        if cache is not None and where["padding_mask"] is not None:  # it has all columns
            columns = ops.arange(ops.shape(inputs["token_ids"])[1], dtype="int32") + cache_position
            where["padding_mask"] = ops.take(where["padding_mask"], columns, axis=1)
        for block, dropout, state in zip(self.blocks, self.dropouts, cache or [None] * len(self.blocks), strict=True):
            x, state = block(x, **where, state=state)
            x = dropout(x, training=training)
            states.append(state)
            hidden_states.append(x)
        if positions is not None:
            hidden_states[-1] = gather_positions(hidden_states[-1], positions)
        return StackOutputs(hidden_states, [], states)

    def empty_cache(self, batch: Tensor, length: int) -> list[Tensor]:
        """The states before the first token: a pair of zeros [batch, H] for each LSTM."""
        zeros = [ops.zeros((batch, block.width), dtype=block.compute_dtype) for block in self.blocks]
        return [(x, x) for x in zeros]


@keras.saving.register_keras_serializable("bert_tf")
class BiLstmEncoder(Encoder):
    """Token vectors and bidirectional LSTM layers. Padding must be on the right.

    Args:
        config: a `BiLstmConfig`.
        pooler: whether there is a `pooled_output`: what each direction computed last, at the last and at the first
            real token. It has no weights.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None for the global one.
        name: of the model; None for that of its family.

    Call arguments, results: see `Encoder`. Only `token_ids` and `padding_mask` are read: the texts of a packed sequence
    are not separated.

    Raises:
        DataError: when called: see `Backbone`.

    Example:
        encoder = BiLstmEncoder(BiLstmConfig(vocabulary_size=100, hidden_size=16, embedding_size=8))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = BiLstmConfig

    def __init__(self, config: BiLstmConfig, pooler: bool = False, dtype: Policy = None, **options: Options) -> None:
        # === Layers ===
        dtype = policy(dtype)
        embeddings = token_embeddings(config, dtype, size=config.embedding_size)
        self._blocks = [_layer(config, dtype, f"lstm_{i}") for i in range(config.num_layers)]
        # === Functional model ===
        inputs = encoder_inputs()
        mask = inputs["padding_mask"]
        x = embeddings(inputs["token_ids"])
        for i, layer in enumerate(self._blocks):
            x = Dropout(config.dropout, dtype=dtype, name=f"dropout_{i}")(layer(x, mask=mask))
        outputs = {"sequence_output": x}
        if pooler:
            outputs["pooled_output"] = EndsOfDirections(dtype=dtype, name="pooler")(x, mask)
        # === Configuration ===
        super().__init__(config, inputs, outputs, dtype, pooler=pooler, **options)

    def blocks(self) -> list[keras.Layer]:
        return list(self._blocks)


def _layer(config, dtype, name):
    # XLA cannot compile cuDNN's kernel into a training step.
    options = {"return_sequences": True, "use_cudnn": False, "dtype": dtype}
    forward, backward = (
        keras.layers.LSTM(config.hidden_size // 2, go_backwards=back, name=direction, **options)
        for back, direction in ((False, "forward"), (True, "backward"))
    )
    return BiLstm(forward, backward_layer=backward, dtype=dtype, name=name)
