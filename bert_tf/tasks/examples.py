"""A task's data once it has been read: plain Python lists, and where they came from."""

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
            `words` (tagging); None for unlabelled examples.
        path: the file they were read from.
        lines: the line of each example in that file, counted from 1; None without a file.
        unit: what `lines` count: "line", or "item" of a JSON array.
        ids: for each example {"id": ...}, or {} if its row has none; None without a file.
        lacking: of a file read for `predict` the answers to lines without an example:
            {"line": 7, "error": "the line is empty"}.
        skipped: malformed rows that were left out on request.
        columns: what was read from where, e.g. {"text": "sentence", "label": "label"}.
        details: for each example what else the task keeps of it; None for nothing.
        documents: for each example the number of its document, of files that mark where documents begin; None for other
            files.
        word_lines: for each example the line of each of its words, of CoNLL files; None for other files.

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
    lacking: list = dataclasses.field(default_factory=list)
    skipped: int = 0
    columns: dict = dataclasses.field(default_factory=dict)
    details: list | None = None
    documents: list | None = None
    word_lines: list | None = None

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

    def one_a_line(self, answers):
        """The answers (a dict for each example), with line, id and text, and `lacking` between them: as in the file."""
        numbered = list(self.lacking)
        for index, answer in enumerate(answers):
            about = {self.unit: self.lines[index]} | (self.ids[index] if self.ids else {})
            for name, texts in (("text", self.texts), ("text_pair", self.text_pairs)):
                if texts is not None:
                    about[name] = texts[index]
            numbered.append(about | answer)
        return sorted(numbered, key=lambda answer: answer[self.unit])
