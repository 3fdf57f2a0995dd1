"""A bidirectional LSTM (Graves and Schmidhuber 2005) above a token table: the encoder before pretrained transformers.

Its layers are Keras's `LSTM` (Hochreiter and Schmidhuber 1997, with a forget gate). `encoder.family: bilstm` of
`bert-tf finetune` puts it above word vectors.
"""

import keras

from bert_tf.backend import Dropout
from bert_tf.layers import BiLstm, Embeddings, EndsOfDirections
from bert_tf.models.backbone import policy
from bert_tf.models.bilstm_config import BiLstmConfig
from bert_tf.models.encoder import Encoder, encoder_inputs


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

    def __init__(self, config, pooler=False, dtype=None, name=None, **options):
        # === Layers ===
        dtype = policy(dtype)
        embeddings = Embeddings(
            vocabulary_size=config.vocabulary_size, size=config.embedding_size, dropout=config.dropout, initializer_range=config.initializer_range, dtype=dtype,
            name="embeddings",
        )  # fmt: skip
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
        super().__init__(config, inputs, outputs, dtype, name, pooler=pooler, **options)

    def blocks(self):
        return list(self._blocks)


def _layer(config, dtype, name):
    forward, backward = (
        keras.layers.LSTM(
            config.hidden_size // 2,
            return_sequences=True,
            go_backwards=back,
            use_cudnn=False,  # XLA cannot compile cuDNN's kernel into a training step
            dtype=dtype,
            name=direction,
        )
        for back, direction in ((False, "forward"), (True, "backward"))
    )
    return BiLstm(forward, backward_layer=backward, dtype=dtype, name=name)
