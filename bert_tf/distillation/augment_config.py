"""The settings of augmentation. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range

Count = Annotated[int, Range(at_least=1)]


@dataclasses.dataclass(frozen=True)
class AugmentConfig:
    """How other versions of texts are made. TinyBERT takes 10 (MNLI, QQP), 20 (SST-2, QNLI) or 30 versions of a text.

    Attributes:
        copies: versions that are drawn of each text.
        rate: the probability with which a word is replaced.
        candidates: of how many tokens or words one is drawn. Tokens that continue a word, and special tokens, are left
            out.
        vectors: word vectors for words of several tokens: a run of `bert-tf vectors`, or a file of GloVe, word2vec or
            fastText; null: those words stay.
        stop_words: a file of words that stay, a word a line; or "english", those that scikit-learn lists; or "none".
        seed: of the draws. The versions of a text are a function of it and of the text's key.
        batch_size: sequences computed together; a text becomes one for each word.
        columns: how the file is read, as `data.columns` of fine-tuning.
        labelled: whether the labels of the file are kept.

    Example:
        AugmentConfig(copies=30, vectors="glove.6B.50d.txt")
    """

    copies: Count = 20
    rate: Annotated[float, Range(above=0, at_most=1)] = 0.4
    candidates: Count = 15
    vectors: str | None = None
    stop_words: str = "english"
    seed: Annotated[int, Range(at_least=0)] = 0
    batch_size: Count = 32
    columns: dict = dataclasses.field(default_factory=dict)
    labelled: bool = True
