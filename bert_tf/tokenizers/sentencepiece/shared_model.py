"""SentencePiece models that outlive the caches of TensorFlow."""

import hashlib
from typing import Any

from tensorflow_text import SentencepieceTokenizer
from tensorflow_text.python.ops import sentencepiece_tokenizer


class SharedSentencepiece(SentencepieceTokenizer):
    """`tensorflow_text.SentencepieceTokenizer` whose model is kept by TensorFlow under the checksum of its bytes.

    The original's belongs to the operation that made it, and is lost when TensorFlow empties its caches:
    `keras.utils.set_random_seed` does that, and the next text raises NotFoundError.

    Args:
        model: bytes of a SentencePiece model file.
        options: of `tensorflow_text.SentencepieceTokenizer`.
    """

    def __init__(self, model: bytes, **options: Any) -> None:
        super().__init__(model, **options)
        self._model_resource = _SharedModel(model, name=None)


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    def _create_resource(self):
        name = hashlib.sha256(self._model).hexdigest()
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(model=self._model, shared_name=name)
