"""The settings of the columns of data: which column has which role. No TensorFlow is imported."""

import dataclasses
from typing import Any, ClassVar, Literal, TypeVar

from bert_tf.config import build, check
from bert_tf.errors import ConfigError

#: The usual names of columns, in lower case, by role.
TEXT_NAMES = (
    "text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review",
    "document", "content", "comment", "body", "#1 string",
)  # fmt: skip
PAIR_NAMES = ("text_pair", "sentence2", "text2", "hypothesis", "question2", "#2 string")
LABEL_NAMES = (
    "label", "labels", "gold_label", "class", "category", "target", "sentiment", "score",
    "is_duplicate", "quality",
)  # fmt: skip
ID_NAMES = ("id", "idx", "index", "guid", "uid")


@dataclasses.dataclass(frozen=True)
class ColumnsConfig:
    """How a data file is read. The columns of a kind of task are a subclass, named in its settings (`TaskConfig.columns`).

    A column is a name (TSV and CSV with a header, the keys of JSON) or a number counted from 0, where -1 is the last
    (files without a header, CoNLL). A column left None is found by its usual names (`usual`).

    Attributes:
        format: how the file is read; None: by its ending (.tsv, .csv, .json, .jsonl, .conll, .conllu,
            .iob, .bio, .txt, .parquet), and where that says nothing by what it holds.
        skip_malformed: skip and count the rows that cannot be used, where the default is to stop at the first one.

    Example:
        task = build_task({"kind": "multirc"}, tokenizer, {"skip_malformed": True})
    """

    format: Literal["tsv", "csv", "jsonl", "conll", "lines", "parquet"] | None = None
    skip_malformed: bool = False

    #: Role -> the usual names of its column, in lower case.
    usual: ClassVar[dict[str, tuple[str, ...]]] = {}

    @property
    def are_numbered(self) -> bool:
        """Whether a column is given by its number."""
        values = [getattr(self, role) for role in self.usual]
        return any(isinstance(n, int) for value in values for n in (value if isinstance(value, tuple) else (value,)))


@dataclasses.dataclass(frozen=True)
class TableColumns(ColumnsConfig):
    """How a data file is read that may be TSV or CSV.

    Attributes:
        header: whether a TSV or CSV file begins with the names of its columns. None: yes, unless
            columns are given by number.
        quoted: whether "..." quotes a field that holds separators. None: in CSV yes; in TSV no, as
            GLUE writes them.
    """

    header: bool | None = None
    quoted: bool | None = None


@dataclasses.dataclass(frozen=True)
class TextColumns(TableColumns):
    """The columns of a text or a pair of texts with a label.

    Attributes:
        text: the text, or the first one of a pair.
        text_pair: the second text of a pair.
        label: the label, or the number.

    Example:
        task = build_task({"kind": "classification"}, tokenizer, TextColumns(text="review", label="stars"))
    """

    text: str | int | None = None
    text_pair: str | int | None = None
    label: str | int | None = None

    usual: ClassVar = {"text": TEXT_NAMES, "text_pair": PAIR_NAMES, "label": LABEL_NAMES}


Columns = TypeVar("Columns", bound=ColumnsConfig)


def changed_columns(columns: Columns, changes: dict[str, Any] | Columns | None) -> Columns:
    """`columns` with some settings changed.

    Args:
        columns: a `ColumnsConfig`.
        changes: a dict of settings; or other columns of the same class, which replace them; None for no changes.

    Raises:
        ConfigError: an unknown setting, or a wrong value.
    """
    if isinstance(changes, ColumnsConfig):
        if type(changes) is not type(columns):
            raise ConfigError(f"data.columns is of {type(changes).__name__}; the task reads {type(columns).__name__}")
        check(changes, "data.columns")
        return changes
    return build(type(columns), changes, "data.columns", base=columns)
