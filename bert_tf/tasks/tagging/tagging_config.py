"""The settings of tagging. No TensorFlow is imported."""

import dataclasses
from typing import ClassVar, Literal

from bert_tf.tasks.config import HeadedTaskConfig
from bert_tf.tasks.rows.columns_config import TEXT_NAMES, TableColumns
from bert_tf.tasks.sections import LabelLossConfig, LMDecoderConfig, TokenHeadConfig


@dataclasses.dataclass(frozen=True)
class TaggingColumns(TableColumns):
    """The columns of tagged words.

    Attributes:
        words: the words; in CoNLL column 0, in CoNLL-U (ten columns) FORM.
        tags: the tags; in CoNLL the last column, in CoNLL-U UPOS, the universal parts of speech.
        text: the text, of files of texts, which `predict` takes.
        tag_scheme: the scheme of the entity tags in the file; "conlleval" takes any tags and reads the entities that
            conlleval finds. `predict` writes in this scheme. None: recognized; `predict` writes in that of the
            training file.

    Example:
        task = build_task({"kind": "tagging"}, tokenizer, TaggingColumns(words=1, tags="XPOS"))
    """

    words: str | int | None = None
    tags: str | int | None = None
    text: str | int | None = None
    tag_scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU", "conlleval"] | None = None

    usual: ClassVar = {
        "words": ("words", "tokens"),
        "tags": ("tags", "ner_tags", "pos_tags", "labels"),
        "text": TEXT_NAMES,
    }


@dataclasses.dataclass(frozen=True)
class TaggingConfig(HeadedTaskConfig):
    """The settings of the task tagging: those of `HeadedTaskConfig` and these.

    Attributes:
        labels: the tag set in the order of the output units. None: all tags of the first labelled file that is read, of
            entities with those that their scheme has beside them.
        loss: the training loss.
        scheme: the scheme of the entity tags that the model learns. Files in another scheme are rewritten when they are
            read. None: that of the training file.

        context: what the model reads around a sentence. "sentence": nothing. "document": as much of its document as
            fits into `sequence_length`, the same on both sides where there is so much (the maximal document context of
            Devlin et al. 2019, section 5.3); documents begin at -DOCSTART- lines, or at "# newdoc" in CoNLL-U. "file":
            the same with the whole file as one document. Each sentence is one sequence, in training too, and its tags
            alone count (Schweter and Akbik 2020, FLERT); BERT's own code for this task was not published.

    Example:
        TaggingConfig(scheme="BIOES")
    """

    kind: str | None = "tagging"
    labels: tuple[str, ...] | None = None
    head: TokenHeadConfig = TokenHeadConfig()
    decoder: LMDecoderConfig = LMDecoderConfig()
    loss: LabelLossConfig = LabelLossConfig()
    scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU"] | None = None
    context: Literal["sentence", "document", "file"] = "sentence"

    columns: ClassVar = TaggingColumns
    min_labels: ClassVar = 1
