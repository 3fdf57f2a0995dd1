"""Word vectors as an encoder: each token has the same vector in every text.

The vectors come from `bert-tf vectors` or from published files of word2vec, GloVe or fastText
(`bert_tf.checkpoints.word_vectors`).
"""

import keras
from keras import ops

from bert_tf.backend import Layer
from bert_tf.models.backbone import policy
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import token_embeddings
from bert_tf.models.word_vectors.config import WordVectorsConfig
from bert_tf.types import Options, Policy, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class WordVectorsEncoder(Encoder):
    """A table of word vectors: no positions, no context.

    Args:
        config: a `WordVectorsConfig`.
        pooler: whether there is a `pooled_output`, the mean of the vectors of the real tokens. It has no weights.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None for the global one.
        name: of the model; None for that of its family.

    Call arguments, results: see `Encoder`. Only `token_ids` and `padding_mask` are read.

    Raises:
        DataError: when called: see `Backbone`.

    Example:
        encoder = WordVectorsEncoder(WordVectorsConfig(vocabulary_size=100, hidden_size=16))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = WordVectorsConfig

    def __init__(
        self, config: WordVectorsConfig, pooler: bool = False, dtype: Policy = None, **options: Options
    ) -> None:
        # === Layers ===
        dtype = policy(dtype)
        embeddings = token_embeddings(config, dtype)
        # === Functional model ===
        inputs = encoder_inputs()
        outputs = {"sequence_output": embeddings(inputs["token_ids"])}
        if pooler:
            mean = MeanOfTokens(dtype=dtype, name="pooler")
            outputs["pooled_output"] = mean(outputs["sequence_output"], inputs["padding_mask"])
        # === Configuration ===
        super().__init__(config, inputs, outputs, dtype, pooler=pooler, **options)


@keras.saving.register_keras_serializable("bert_tf")
class MeanOfTokens(Layer):
    """The mean of the vectors at real tokens.

    Call arguments:
        x: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens; None for all.

    Returns:
        [B, H]; zeros for a text without tokens.

    Example:
        MeanOfTokens()(np.ones((2, 3, 4), "float32"))  # [2, 4]
    """

    def call(self, x: Tensor, padding_mask: Tensor = None) -> Tensor:
        if padding_mask is None:
            return ops.mean(x, 1)
        real = ops.cast(padding_mask, "float32")
        total = ops.einsum("bsh,bs->bh", ops.cast(x, "float32"), real)
        return ops.cast(total / ops.maximum(ops.sum(real, 1, keepdims=True), 1.0), x.dtype)
