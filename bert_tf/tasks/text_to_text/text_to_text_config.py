"""The settings of text to text. No TensorFlow is imported."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, nearest
from bert_tf.errors import ConfigError
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.tasks.config import TaskConfig
from bert_tf.tasks.glue import GLUE_TASKS
from bert_tf.tasks.rows.columns_config import LABEL_NAMES, TEXT_NAMES, TableColumns
from bert_tf.tasks.text_to_text.t5_formats import LANGUAGES, T5_FORMATS, t5_format


@dataclasses.dataclass(frozen=True)
class SourceColumns(TableColumns):
    """The columns of two texts, of which the second one is written.

    Attributes:
        source: the text that is read.
        target: the text that is written. A `task.format` has its own columns; those of GLUE's TSV files are called as
            those of classification.

    Example:
        task = build_task({"kind": "text_to_text"}, tokenizer, {"source": "question", "target": "answer"})
    """

    source: str | int | None = None
    target: str | int | None = None

    usual: ClassVar = {
        "source": ("source", "input", "inputs", "article", "document", *TEXT_NAMES),
        "target": ("target", "targets", "output", "summary", "highlights", *LABEL_NAMES),
    }


@dataclasses.dataclass(frozen=True)
class TextToTextConfig(TaskConfig):
    """The settings of the task text_to_text: those of `TaskConfig` and these.

    `sequence_length` is the largest number of tokens in a source, special tokens included.

    Attributes:
        labels: the label set, where the targets are labels; None for other targets.
        format: one of T5's formats (`bert_tf.tasks.text_to_text.t5_formats`), such as "rte", "squad" or "translate": it
            reads that data set's own files and writes its sources and targets as T5 does. None: the columns of the file
            are the source and the target.
        languages: of the format "translate": the codes of two languages, from and to, such as [en, de]; the files have
            a column or key for each.
        prefix: a text before each source, such as "simplify: "; None for none. A format has its own.
        target_length: the largest number of tokens in a target, the token that ends it included. T5 has 84 for GLUE,
            62 for SuperGLUE, 97 for SQuAD and 512 for all else.
        generation: how texts are generated in evaluation and prediction; see `GenerationConfig`.
        text_metrics: further metrics of free texts: "bleu" by the package sacrebleu, "rouge" by rouge-score. None:
            both, and none where targets are labels, numbers or answers to questions.
        bleu_tokenize: sacrebleu's tokenizer of BLEU. T5 has "intl"; "char" suits scripts without spaces.

    Raises:
        ConfigError: an unknown format, a format together with a prefix or labels, or languages that do not fit it.

    Example:
        TextToTextConfig(format="translate", languages=("en", "de"), target_length=128)
    """

    kind: str | None = "text_to_text"
    labels: tuple[str, ...] | None = None
    format: str | None = None
    languages: tuple[str, ...] | None = None
    prefix: str | None = None
    target_length: Annotated[int, Range(at_least=2, at_most=1 << 20)] = 64
    generation: GenerationConfig = GenerationConfig()
    text_metrics: tuple[Literal["bleu", "rouge"], ...] | None = None
    bleu_tokenize: Literal["intl", "13a", "char", "zh", "none"] = "intl"

    columns: ClassVar = SourceColumns

    def default_columns(self):
        if self.format is None:
            return SourceColumns()
        glue = t5_format(self.format, self.languages).glue
        return GLUE_TASKS[glue].columns if glue else TableColumns()

    def __post_init__(self):
        self._check_languages()
        if self.format is None:
            return
        if self.format not in T5_FORMATS:
            raise ConfigError(f"task.format is '{self.format}'{nearest(self.format, T5_FORMATS)}")
        labels = t5_format(self.format, self.languages).labels
        if self.prefix or self.labels not in (None, labels):
            setting = "task.prefix" if self.prefix else "task.labels"
            raise ConfigError(f"task.format={self.format} has its own prefix and labels; remove {setting}")

    def _check_languages(self):
        languages = self.languages
        if (self.format == "translate") != (languages is not None):
            change = "remove them" if languages else "set task.languages=[en, de]"
            raise ConfigError(f"task.format=translate and task.languages belong together; {change}")
        if languages is None:
            return
        unknown = [code for code in languages if code not in LANGUAGES]
        if unknown or len(set(languages)) != 2 or len(languages) != 2:
            raise ConfigError(
                f"task.languages is [{', '.join(languages)}]; it must be two of {', '.join(LANGUAGES)}, from and to"
            )
