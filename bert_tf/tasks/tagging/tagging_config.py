"""The settings of tagging. No TensorFlow is imported."""

import dataclasses
from typing import Literal

from bert_tf.tasks.config import TaskConfig


@dataclasses.dataclass(frozen=True)
class TaggingConfig(TaskConfig):
    """The settings of the task tagging: those of `TaskConfig` and these.

    Attributes:
        scheme: the scheme of the entity tags that the model learns. Files in another scheme are rewritten when they are
            read. None: that of the training file.

        context: what the model reads around a sentence. "sentence": nothing. "document": as much of its document as
            fits into `sequence_length`, the same on both sides where there is so much (the maximal document context of
            Devlin et al. 2019, section 5.3); documents begin at -DOCSTART- lines, or at "# newdoc" in CoNLL-U. "file":
            the same with the whole file as one document. Each sentence is one sequence, in training too, and its tags
            alone count (Schweter and Akbik 2020, FLERT); BERT's own code for this task was not published.

    Example:
        TaggingConfig(kind="tagging", scheme="BIOES")
    """

    scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU"] | None = None
    context: Literal["sentence", "document", "file"] = "sentence"
