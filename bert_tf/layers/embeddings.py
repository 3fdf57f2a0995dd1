"""Token, position and segment embeddings."""

import keras
from keras import ops

from bert_tf.backend import Dropout
from bert_tf.errors import ConfigError


@keras.saving.register_keras_serializable("bert_tf")
class Embeddings(keras.layers.Layer):
    """The sum of token, learned position and segment embeddings, normalized, with dropout.

    BERT (Devlin et al. 2018, section 3 and figure 2); `embedding_postprocessor` in
    google-research/bert `modeling.py`.

    Args:
        vocabulary_size: rows of the token table.
        size: E, the width of all three tables.
        max_positions: rows of the position table.
        num_segments: rows of the segment table.
        dropout: rate after the normalization.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills the tables.

    Call arguments:
        token_ids: int32 [B, S].
        segment_ids: int32 [B, S]; None means all zeros.
        position_ids: int32 [B, S]; None means 0..S-1 in every row.
        training: whether dropout is active.

    Returns:
        float [B, S, E] in the compute dtype.

    Raises:
        ConfigError: S is above `max_positions` and no `position_ids` say otherwise.
    """

    def __init__(
        self,
        vocabulary_size,
        size,
        max_positions,
        num_segments,
        dropout,
        layer_norm_epsilon,
        initializer_range,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.size = size
        self.max_positions = max_positions
        self.num_segments = num_segments
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape):
        def table(name, rows):
            # Not cast as a whole under mixed precision: the rows that were looked up are, which
            # is thousands of times less work and keeps the gradient sparse.
            return self.add_weight(
                shape=(rows, self.size),
                initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
                autocast=False,
                name=name,
            )

        self.token_table = table("token_embeddings", self.vocabulary_size)
        self.position_table = table("position_embeddings", self.max_positions)
        self.segment_table = table("segment_embeddings", self.num_segments)
        self.layer_norm.build((None, None, self.size))

    def call(self, token_ids, segment_ids=None, position_ids=None, training=False):
        x = ops.take(self.token_table, token_ids, axis=0)  # [B, S, E]
        if position_ids is None:
            length = token_ids.shape[1]
            check_length(length, self.max_positions)
            # A slice, broadcast over the batch, is cheaper than a gather forward and backward.
            x = x + self.position_table[: ops.shape(token_ids)[1]]
        else:
            x = x + ops.take(self.position_table, position_ids, axis=0)
        if segment_ids is None:
            x = x + self.segment_table[0]
        else:
            x = x + ops.take(self.segment_table, segment_ids, axis=0)
        return self.dropout(self.layer_norm(ops.cast(x, self.compute_dtype)), training=training)

    def compute_output_spec(self, token_ids, segment_ids=None, position_ids=None, training=False):
        return keras.KerasTensor((*token_ids.shape, self.size), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "size": self.size,
            "max_positions": self.max_positions,
            "num_segments": self.num_segments,
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }


def check_length(length, max_positions):
    """Refuses a sequence for whose last tokens there is no position embedding.

    Args:
        length: the length, or None where it is not known yet.
        max_positions: rows of the position table.

    Raises:
        ConfigError: `length` is above `max_positions`.
    """
    if length is not None and length > max_positions:
        raise ConfigError(
            f"sequences of {length} tokens do not fit a model with max_positions={max_positions}; "
            "shorten the sequences or build the model with more positions"
        )
