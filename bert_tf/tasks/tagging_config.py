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

    Example:
        TaggingConfig(kind="tagging", scheme="BIOES")
    """

    scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU"] | None = None
