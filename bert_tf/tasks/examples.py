"""What a task's data is once it has been read: plain Python lists, and where they came from."""

import dataclasses


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Examples of one task, in the order of their file.

    Exactly one of `texts` and `words` is given.

    Attributes:
        texts: list of str.
        text_pairs: list of str, the second sentences, or None.
        words: list of lists of str, sentences already split (tagging), or None.
        labels: list of str (classification), of float (regression), of lists of str as long as
            `words` (tagging); None where the examples are unlabelled.
        path: the file they were read from.
        lines: the line of each example in that file, counted from 1.
        skipped: malformed rows that were left out on request.
        columns: what was read from where, e.g. {"text": "sentence", "label": "label"}.
    """

    texts: list | None = None
    text_pairs: list | None = None
    words: list | None = None
    labels: list | None = None
    path: str = "the given examples"
    lines: list | None = None
    skipped: int = 0
    columns: dict = dataclasses.field(default_factory=dict)

    def __len__(self):
        return len(self.words if self.texts is None else self.texts)

    def where(self, index):
        """"reviews.tsv, line 7", for messages."""
        if self.lines is None:
            return f"{self.path}, example {index}"
        return f"{self.path}, line {self.lines[index]}"
