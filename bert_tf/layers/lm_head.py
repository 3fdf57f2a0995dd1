"""Vocabulary logits straight from hidden vectors."""

import keras
from keras import ops

from bert_tf.backend import product_with_transposed


@keras.saving.register_keras_serializable("bert_tf")
class LMHead(keras.layers.Layer):
    """A decoder tied to the token embedding table, with a bias of its own and nothing before it.

    `lm_loss` with tie_weight in zihangdai/xlnet `modeling.py`.

    Args:
        vocabulary_size: V, the length of the bias.

    Call arguments:
        x: float [B, P, H].
        embedding_table: float [V, H].

    Returns:
        float32 [B, P, V].

    Example:
        LMHead(30)(np.ones((2, 4, 8), "float32"), np.ones((30, 8), "float32"))  # [2, 4, 30]
    """

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size

    def build(self, x_shape):
        # float32 like the logits it is added to, whatever the compute dtype.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", autocast=False, name="output_bias"
        )

    def call(self, x, embedding_table):
        table = ops.cast(embedding_table, self.compute_dtype)
        logits = product_with_transposed(x, table)
        return ops.cast(logits, "float32") + ops.cast(self.output_bias, "float32")

    def compute_output_spec(self, x, embedding_table):
        return keras.KerasTensor((*x.shape[:-1], self.vocabulary_size), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size}
