"""Whether the documents of a row are texts of their own. No TensorFlow is imported."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class DocumentsConfig:
    """What a token sees of a row that holds several documents.

    Attributes:
        separate: whether a token sees only its own document: attention and predictions end at the separators that
            shards of the formats full_sentences and token_blocks have between documents, and positions restart after
            them. False: a row is one text, and a token sees all tokens before it, as in GPT-2 and nanoGPT.

    Example:
        DocumentsConfig(separate=True)
    """

    separate: bool = False
