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
        lines: the line of each example in that file, counted from 1; None for examples of no file.
        unit: what `lines` count: "line", or "item" of a JSON array.
        ids: for each example {"id": ...}, or {} where its row has none; None for examples of no file.
        lacking: of a file read for `predict` the lines that hold no example, as the answers to them:
            {"line": 7, "error": "the line is empty"}.
        skipped: malformed rows that were left out on request.
        columns: what was read from where, e.g. {"text": "sentence", "label": "label"}.
    """

    texts: list | None = None
    text_pairs: list | None = None
    words: list | None = None
    labels: list | None = None
    path: str = "the given examples"
    lines: list | None = None
    unit: str = "line"
    ids: list | None = None
    lacking: list = dataclasses.field(default_factory=list)
    skipped: int = 0
    columns: dict = dataclasses.field(default_factory=dict)

    def __len__(self):
        return len(self.words if self.texts is None else self.texts)

    def where(self, index):
        """"reviews.tsv, line 7", for messages."""
        if self.lines is None:
            return f"{self.path}, example {index}"
        return f"{self.path}, {self.unit} {self.lines[index]}"

    def one_a_line(self, answers):
        """The answers to the examples of a file, with those to lines without an example between them.

        Args:
            answers: a dict for each example.

        Returns:
            A list of dicts in the order of the file, each with its line, id and text.
        """
        numbered = list(self.lacking)
        for index, answer in enumerate(answers):
            about = {self.unit: self.lines[index]} | (self.ids[index] if self.ids else {})
            if self.texts is not None:
                about["text"] = self.texts[index]
            if self.text_pairs is not None:
                about["text_pair"] = self.text_pairs[index]
            numbered.append(about | answer)
        return sorted(numbered, key=lambda answer: answer[self.unit])
