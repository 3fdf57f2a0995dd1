"""The settings of multiple choice. No TensorFlow is imported."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.choices.formats import FORMATS
from bert_tf.tasks.config import HeadedTaskConfig
from bert_tf.tasks.rows.columns_config import LABEL_NAMES, TableColumns
from bert_tf.tasks.sections import LMDecoderConfig


@dataclasses.dataclass(frozen=True)
class ChoiceColumns(TableColumns):
    """The columns of questions with options, where the file is none of the data sets of `task.format`.

    Attributes:
        context: the text that the question is about.
        question: the question, or the beginning that all options continue.
        options: the columns of the options, or the one column that holds a JSON list of them. None: they are found by
            their usual names (`option0`, `choice1`, `ending0`, `answer0`, `A`; `options`, ...).
        label: the right option: its number, its letter or its text.
        first_label: the number of the first option where labels are numbers.

    Example:
        task = build_task({"kind": "multiple_choice"}, tokenizer, {"question": "stem", "options": ["right", "wrong"]})
    """

    context: str | int | None = None
    question: str | int | None = None
    options: tuple[str | int, ...] | None = None
    label: str | int | None = None
    first_label: Annotated[int, Range(at_least=0, at_most=1)] = 0

    usual: ClassVar = {
        "context": (
            "context", "passage", "article", "story", "paragraph", "document", "dialogue", "premise", "text",
        ),
        "question": ("question", "query", "stem", "prompt"),
        "options": ("options", "choices", "endings", "candidates", "answers"),
        "label": (*LABEL_NAMES, "answer", "answerkey", "gold", "correct"),
    }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class MultipleChoiceConfig(HeadedTaskConfig):
    """The settings of the task multiple_choice: those of `HeadedTaskConfig` and these.

    `sequence_length` is the largest number of tokens of a row, which holds the context, the question and one option.

    Attributes:
        format: the data set whose files are read: "swag", "race", "arc", "copa", "rocstories", or "columns" for any
            table. None: the one whose columns or keys the file has.
        question_joins: the text that the question becomes a part of: "option", as in RACE; "context", as Radford et al.
            2018, section 3.3, have it. None: "context" with the layout "gpt1" and for COPA, else "option".
        blank: a mark in the question, each of which the option replaces; the option follows a question without it.
            None:
            "_" in RACE files, none in others. "": none.
        order: which text comes first in a row. "option" is fairseq's order for RACE.
        context_length: the largest number of tokens of the context; longer ones are cut at the end. None: no such
            limit.
        option_length: the same for the option with what joins it; a row that is still too long is then cut at the end
            of its context. None: a row that is too long loses tokens at the end of its longer text, as pairs do.
        option_kept: the part of a text longer than `option_length` that is kept.

    Raises:
        ConfigError: an unknown format; `context_length` without `option_length`.

    Example:
        MultipleChoiceConfig(sequence_length=512, option_length=128)
    """

    kind: str | None = "multiple_choice"
    decoder: LMDecoderConfig = LMDecoderConfig()
    format: str | None = None
    question_joins: Literal["option", "context"] | None = None
    blank: str | None = None
    order: Literal["context", "option"] = "context"
    context_length: Annotated[int | None, Range(at_least=1)] = None
    option_length: Annotated[int | None, Range(at_least=1)] = None
    option_kept: Literal["last", "first"] = "last"

    columns: ClassVar = ChoiceColumns

    def __post_init__(self):
        super().__post_init__()
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"task.format is '{self.format}'{nearest(self.format, FORMATS)}")
        if self.context_length is not None and self.option_length is None:
            raise ConfigError("task.context_length needs task.option_length; set both, or remove task.context_length")
