"""Where XLNet's two streams start: the tokens, and one vector that says nothing about them."""

import keras
from keras import ops

from bert_tf.backend import Dropout, lookup


@keras.saving.register_keras_serializable("bert_tf")
class StreamEmbeddings(keras.layers.Layer):
    """Token embeddings for the content stream, a learned vector for the query stream.

    Yang et al. 2019, section 2.3 (h and g of layer 0); `transformer_xl` in zihangdai/xlnet
    `modeling.py`. Nothing is added for positions and segments, which attention sees relatively,
    and nothing is normalized.

    Args:
        vocabulary_size: rows of the token table.
        size: H.
        dropout: rate on the result.
        initializer_range: standard deviation of the normal that fills the table and the vector.

    Call arguments:
        token_ids: int [B, S]; with `queries` only its shape counts.
        queries: whether the result is that of the query stream.
        training: whether dropout is active.

    Returns:
        float [B, S, H] in the compute dtype.

    Example:
        StreamEmbeddings(30, 8, dropout=0.1, initializer_range=0.02)(np.zeros((2, 5), "int32"))  # [2, 5, 8]
    """

    def __init__(self, vocabulary_size, size, dropout, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.size = size
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.query_dropout = Dropout(dropout, dtype=self.dtype_policy, name="query_dropout")

    def build(self, token_ids_shape):
        def weight(name, *shape):
            # Not cast as a whole under mixed precision, as in `Embeddings`.
            initializer = keras.initializers.RandomNormal(stddev=self.initializer_range)
            return self.add_weight(shape=shape, initializer=initializer, autocast=False, name=name)

        self.token_table = weight("token_embeddings", self.vocabulary_size, self.size)
        self.query_vector = weight("query_vector", 1, 1, self.size)

    def call(self, token_ids, queries=False, training=False):
        if not queries:
            x = ops.cast(lookup(self.token_table, token_ids), self.compute_dtype)
            return self.dropout(x, training=training)
        batch, count = ops.shape(token_ids)
        x = ops.broadcast_to(ops.cast(self.query_vector, self.compute_dtype), (batch, count, self.size))
        return self.query_dropout(x, training=training)

    def compute_output_spec(self, token_ids, queries=False, training=False):
        return keras.KerasTensor((*token_ids.shape, self.size), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "size": self.size,
            "dropout": self.dropout.rate,
            "initializer_range": self.initializer_range,
        }
