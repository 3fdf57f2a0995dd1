"""Token, position and segment embeddings."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dropout, Layer, TruncatedNormal
from bert_tf.errors import ConfigError
from bert_tf.layers.positions import SinusoidalPositions
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class Embeddings(Layer):
    """The sum of token, position and segment embeddings, normalized, with dropout.

    BERT (Devlin et al. 2018, section 3 and figure 2); `embedding_postprocessor` in
    google-research/bert `modeling.py`. Families without segments (DistilBERT) or whose positions
    are elsewhere (ModernBERT) leave those tables out, GPT leaves out the normalization. The Transformer of 2017
    multiplies the token embeddings by sqrt(E) and adds sinusoids, which are not a table.

    Args:
        vocabulary_size: rows of the token table.
        size: E, the width of all three tables.
        max_positions: the longest sequence, and the rows of the position table; None for no table.
        num_segments: rows of the segment table. With 1 every token gets that row, with 0 there is
            no table: then `segment_ids` are not read.
        dropout: rate after the normalization.
        layer_norm_epsilon: added to the variance; None for no normalization (GPT-1, GPT-2).
        initializer_range: standard deviation of the truncated normal that fills the tables.
        padding_id: None numbers positions from 0. RoBERTa numbers the tokens that are not padding
            from padding_id + 1, and gives padding the position padding_id: fairseq
            `make_positions`. The position table then has padding_id + 1 more rows, and row
            `padding_id` of both tables begins at zero.
        layer_norm_offset: whether the normalization has an offset beside its scale.
        position_initializer_range: of the position table; None for `initializer_range`.
        scale: a factor of the token embeddings.
        sinusoids: the layout of `SinusoidalPositions` to add; None for none.

    Call arguments:
        token_ids: int32 [B, S].
        segment_ids: int32 [B, S]; None means all zeros.
        position_ids: int32 [B, S], counted from 0 also with a `padding_id`; None means
            0..S-1 in every sequence (with a `padding_id`: of the tokens that are not padding).
        training: whether dropout is active.

    Returns:
        float [B, S, E] in the compute dtype.

    Raises:
        ConfigError: S is above `max_positions` and no `position_ids` say otherwise.

    Example:
        embeddings = Embeddings(30, 8, max_positions=16, num_segments=2, dropout=0.1, layer_norm_epsilon=1e-12,
                                initializer_range=0.02)
        embeddings(np.zeros((2, 5), "int32"))  # [2, 5, 8]
    """

    def __init__(
        self,
        vocabulary_size: int,
        size: int,
        max_positions: int | None = None,
        num_segments: int = 0,
        dropout: float = 0.0,
        layer_norm_epsilon: float | None = None,
        initializer_range: float = 0.02,
        padding_id: int | None = None,
        layer_norm_offset: bool = True,
        position_initializer_range: float | None = None,
        scale: float = 1.0,
        sinusoids: str | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.size = size
        self.max_positions = max_positions
        self.num_segments = num_segments
        self.initializer_range = initializer_range
        self.padding_id = padding_id
        self.position_initializer_range = position_initializer_range
        self.scale = scale
        self.sinusoids = None
        if sinusoids is not None:
            self.sinusoids = SinusoidalPositions(size, sinusoids, dtype=self.dtype_policy, name="sinusoids")
        self.layer_norm = None
        if layer_norm_epsilon is not None:
            self.layer_norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, center=layer_norm_offset, dtype=self.dtype_policy, name="layer_norm"
            )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape: Shape) -> None:
        def table(name, rows, zero_row=None, stddev=self.initializer_range):
            # Under mixed precision only the rows that were looked up are cast: thousands of times less work
            # than casting the table.
            return self.add_weight(
                shape=(rows, self.size), initializer=_table_initializer(stddev, zero_row), autocast=False, name=name
            )

        self.token_table = table("token_embeddings", self.vocabulary_size, self.padding_id)
        if self.max_positions is not None:
            rows = self.max_positions + self._first_position
            stddev = self.position_initializer_range or self.initializer_range
            self.position_table = table("position_embeddings", rows, self.padding_id, stddev)
        if self.num_segments:
            self.segment_table = table("segment_embeddings", self.num_segments)
        if self.layer_norm is not None:
            self.layer_norm.build((None, None, self.size))

    @property
    def _first_position(self):
        return 0 if self.padding_id is None else self.padding_id + 1

    def call(
        self, token_ids: Tensor, segment_ids: Tensor = None, position_ids: Tensor = None, training: bool = False
    ) -> Tensor:
        x = ops.take(self.token_table, token_ids, axis=0)  # [B, S, E]
        if self.scale != 1.0:
            x = x * self.scale
        if self.sinusoids is not None:
            x = x + ops.cast(self.sinusoids(token_ids, position_ids), x.dtype)
        if self.max_positions is not None:
            x = x + self._positions(token_ids, position_ids)
        if self.num_segments > 1 and segment_ids is not None:
            x = x + ops.take(self.segment_table, segment_ids, axis=0)
        elif self.num_segments:
            x = x + self.segment_table[0]
        x = ops.cast(x, self.compute_dtype)
        return self.dropout(x if self.layer_norm is None else self.layer_norm(x), training=training)

    def _positions(self, token_ids, position_ids):
        """Embeddings of the positions: [B, S, E], or [S, E] where all sequences have the same."""
        if position_ids is not None:
            return ops.take(self.position_table, position_ids + self._first_position, axis=0)
        check_length(token_ids.shape[1], self.max_positions)
        if self.padding_id is None:
            # A slice, broadcast over the batch, is cheaper than a gather forward and backward.
            return self.position_table[: ops.shape(token_ids)[1]]
        real = ops.cast(ops.not_equal(token_ids, self.padding_id), "int32")
        return ops.take(self.position_table, ops.cumsum(real, axis=1) * real + self.padding_id, axis=0)


def _table_initializer(initializer_range, zero_row):
    normal = TruncatedNormal(stddev=initializer_range)
    if zero_row is None:
        return normal

    def initialize(shape, dtype=None):
        not_zero = ops.cast(ops.not_equal(ops.arange(shape[0]), zero_row), dtype)
        return normal(shape, dtype) * not_zero[:, None]

    return initialize


def check_length(length: int | None, max_positions: Any) -> None:
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
