"""Cloze questions: texts with a blank, the words that fill it, and the options that are compared."""

import dataclasses
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.prompting.rows import read_rows

BLANK = "___"
_FOLDER = Path(__file__).parent / "sets"
#: The questions that come with the library, by language.
CLOZE_SETS = {"english": _FOLDER / "english.tsv", "korean": _FOLDER / "korean.tsv"}


@dataclasses.dataclass(frozen=True)
class ClozeQuestion:
    """A text with one blank.

    Attributes:
        kind: str, the kind of knowledge.
        text: str with `___` where a word is missing.
        answers: tuple of str, the words that are right.
        options: tuple of str, of which the model chooses, the first answer first; empty where it chooses from all
            tokens.

    Example:
        ClozeQuestion("facts", "Paris is in ___.", ("France",), ("France", "Italy")).filled("Italy")
        # ('Paris is in Italy.', (12, 17))
    """

    kind: str
    text: str
    answers: tuple
    options: tuple

    def filled(self, word):
        """(the text with a word in the blank, its (start, end) there, in characters)."""
        begin = self.text.index(BLANK)
        return self.text.replace(BLANK, word), (begin, begin + len(word))


def read_cloze(path, most=None):
    """Reads a TSV, CSV or JSON-lines file with the columns `kind`, `text`, `answers` and `options`.

    `text` has the blank `___`. Answers and options are separated by `|`; the first answer need not be repeated among
    the options.

    Args:
        path: the file.
        most: the first so many questions; None for all.

    Raises:
        DataError: a text without exactly one blank, an empty answer, or fewer than two options; with the number of the
            row.

    Example:
        Path("a.tsv").write_text("kind\\ttext\\tanswers\\toptions\\nfacts\\tParis is in ___.\\tFrance\\tItaly|Spain\\n")
        read_cloze("a.tsv")[0].options  # ('France', 'Italy', 'Spain')
    """
    questions = []
    for number, row in enumerate(read_rows(path, ("kind", "text", "answers", "options"))[:most], 1):
        where = f"{path}, question {number}"
        if row["text"].count(BLANK) != 1:
            raise DataError(
                f"{where}: {brief(row['text'])} has {row['text'].count(BLANK)} blanks {BLANK}; it must have one"
            )
        answers, options = (
            tuple(x.strip() for x in row[name].split("|") if x.strip()) for name in ("answers", "options")
        )
        if not answers:
            raise DataError(f"{where}: there is no answer; give at least one")
        options = tuple(dict.fromkeys((answers[0], *options)))
        if len(options) < 2 or set(options[1:]) & set(answers):
            raise DataError(f"{where}: there must be options beside the answer, and no other one may be right")
        questions.append(ClozeQuestion(row["kind"], row["text"], answers, options))
    return questions
