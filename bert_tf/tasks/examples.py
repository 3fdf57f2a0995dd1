"""A task's data once it has been read: plain Python lists, and where they came from."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from bert_tf.errors import DataError
from bert_tf.tasks.rows.columns_config import ColumnsConfig
from bert_tf.tasks.rows.table import Key, Table, read_each


@dataclasses.dataclass(slots=True)
class Example:
    """What one row holds, or one of its questions: the elements that `Examples` has lists of.

    Attributes:
        id: {"id": ...}, or {} or None for none.

    Example:
        Example(text="good", label="pos")
    """

    text: str | None = None
    text_pair: str | None = None
    words: list[str] | None = None
    label: Any = None
    id: dict | None = None
    details: Any = None
    document: int | None = None
    word_lines: list[int] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Examples of one task, in the order of their file.

    Exactly one of `texts` and `words` is given.

    Attributes:
        texts: list of str.
        text_pairs: list of str, the second texts, or None.
        words: list of lists of str, sentences already split (tagging), or None.
        labels: list of str (classification), of float (regression), of lists of str as long as
            `words` (tagging); None for unlabelled examples.
        path: the file they were read from.
        lines: the line of each example in that file, counted from 1; None without a file.
        unit: what `lines` count: "line", or "item" of a JSON array.
        ids: for each example {"id": ...}, or {} if its row has none; None without a file, or where no row has one.
        unusable_rows: of a file the answers of `predict` to rows that hold no example:
            {"line": 7, "error": "the line is empty"}.
        skipped: how many of them are not empty lines.
        columns: what was read from where, e.g. {"text": "sentence", "label": "label"}.
        columns_config: how the file was read.
        details: for each example what else the task keeps of it; None for nothing.
        documents: for each example the number of its document, of files that mark where documents begin; None for other
            files.
        word_lines: for each example the line of each of its words, of CoNLL files; None for other files.
        traits: what holds for all of the file, such as the scheme of its tags; a dict.

    Example:
        examples = Examples(texts=["good", "bad"], labels=["pos", "neg"], path="a.tsv", lines=[2, 3])
        examples.where(1)  # 'a.tsv, line 3'
    """

    texts: list | None = None
    text_pairs: list | None = None
    words: list | None = None
    labels: list | None = None
    path: str = "the given examples"
    lines: list | None = None
    unit: str = "line"
    ids: list | None = None
    unusable_rows: list = dataclasses.field(default_factory=list)
    skipped: int = 0
    columns: dict = dataclasses.field(default_factory=dict)
    columns_config: ColumnsConfig = ColumnsConfig()
    details: list | None = None
    documents: list | None = None
    word_lines: list | None = None
    traits: dict = dataclasses.field(default_factory=dict)

    #: What `answers_by_row` shows of an example: the key -> the field that holds it.
    shown: ClassVar = {"text": "texts", "text_pair": "text_pairs"}

    def __len__(self):
        return len(self.words if self.texts is None else self.texts)

    def where(self, index):
        """ "reviews.tsv, line 7", for messages."""
        if self.lines is None:
            return f"{self.path}, example {index}"
        return f"{self.path}, {self.unit} {self.lines[index]}"

    def where_word(self, index, position):
        """ "eng.train, line 9", where a word of an example of words stands; without known lines of words its sentence."""
        if self.word_lines is None:
            return f"{self.where(index)}, word {position + 1}"
        return f"{self.path}, line {self.word_lines[index][position]}"

    def answers_by_row(self, answers):
        """The answers (a dict for each example), with line, id and text, and `unusable_rows` between them: as in the file."""
        numbered = list(self.unusable_rows)
        for index, answer in enumerate(answers):
            about = {self.unit: self.lines[index]} | (self.ids[index] if self.ids else {})
            texts = {key: getattr(self, name) for key, name in self.shown.items()}
            about |= {key: values[index] for key, values in texts.items() if values is not None}
            numbered.append(about | answer)
        return sorted(numbered, key=lambda answer: answer[self.unit])


def read_examples(
    table: Table,
    read: Callable[[Any], Iterable[Example]],
    columns: ColumnsConfig,
    labelled: bool,
    chosen: dict[str, Any] | None = None,
    id_key: Key | None = None,
    where: Callable | None = None,
    kind: type = Examples,
) -> Any:
    """Reads the rows of a table into `Examples`.

    A row that cannot be used is an error, unless `columns.skip_malformed` is set. Without labels a bad row of a file is
    answered by its error, as `predict` answers every row.

    Args:
        table: a `Table`.
        read: function(row) -> the `Example` objects that it holds; raises `BadRow`.
        columns: how the table is read.
        labelled: whether the examples have labels.
        chosen: what is read from where.
        id_key, where: of `read_each`.
        kind: the class of the result.

    Raises:
        DataError: of `read_each`; or there is no example at all.
    """
    skip = columns.skip_malformed or (not labelled and table.is_file)
    rows = read_each(table, read, skip, where, id_key)
    examples: list[Example] = rows.items
    if labelled and not examples:
        if rows.bad:
            first = next(row for row in rows.unusable if row["error"] != "the line is empty")
            raise DataError(
                f"{table.path}: all {rows.bad} rows are malformed, {table.unit} {first[table.unit]} because: {first['error']}; "
                "check data.columns"
            )
        raise DataError(f"{table.path} holds no example; it must hold at least one")

    def values(name):
        """The field `name` of all examples; None where none of them has it."""
        column = [getattr(example, name) for example in examples]
        return None if all(value is None for value in column) else column

    words = values("words")
    texts = values("text") or ([] if words is None else None)
    return kind(
        texts=texts,
        text_pairs=values("text_pair"),
        words=words,
        labels=[example.label for example in examples] if labelled else None,
        ids=[example.id or {} for example in examples] if table.is_file and any(e.id for e in examples) else None,
        path=table.path,
        lines=rows.numbers if table.is_file else None,
        unit=table.unit,
        unusable_rows=rows.unusable if table.is_file else [],
        skipped=rows.bad,
        columns=chosen or {},
        columns_config=columns,
        details=values("details"),
        documents=values("document"),
        word_lines=values("word_lines"),
    )
