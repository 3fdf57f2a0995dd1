"""CoNLL files: one word a line with its tags in columns, an empty line between sentences."""

import dataclasses
import re

from bert_tf.config import nearest
from bert_tf.errors import Advice, DataError
from bert_tf.tasks.rows.files import numbered_lines, read_text
from bert_tf.tasks.rows.sniffing import fields_of
from bert_tf.tasks.rows.table import Table
from bert_tf.tasks.rows.values import BadRow

#: The columns of CoNLL-U.
COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
# CoNLL-U numbers a written word that is split into several ("1-2"), and a word that is not written ("8.1"), so.
_NO_WORD = re.compile(r"\d+[-.]\d+")


@dataclasses.dataclass
class Sentence:
    """The words of a sentence of a CoNLL file.

    Attributes:
        words: for each word the fields of its line.
        lines: of each word the number of its line.
        document: the number of its document.
        problem: what is wrong with one of its lines; None for nothing.
    """

    words: list
    lines: list
    document: int
    problem: BadRow | None = None


@dataclasses.dataclass(frozen=True)
class ConllTable(Table):
    """The sentences of a CoNLL file: its rows are `Sentence` objects.

    Attributes:
        fields: the number of fields of a line.
        is_conllu: whether it is CoNLL-U (universaldependencies.org/format.html): its first line holds ten fields with tabs
            between them, the first a number. Its words are the syntactic ones: "1-2 du" and the empty node "8.1" are left
            out.
        marks_documents: whether it marks where documents begin: at a `-DOCSTART-` line, or a comment `# newdoc` of
            CoNLL-U.
    """

    fields: int = 0
    is_conllu: bool = False
    marks_documents: bool = False

    def column(self, chosen, role, usual, usual_of_conllu):
        """The number of a column, from 0, or from the end where negative; in CoNLL-U it may be given by a name, such as "XPOS".

        Raises:
            DataError: there is no such column.
        """
        if chosen is None:
            chosen = usual_of_conllu if self.is_conllu else usual
        if isinstance(chosen, str):
            if not self.is_conllu:
                raise DataError(
                    f"{self.path}: data.columns.{role} is '{chosen}', but the columns of CoNLL files have no names; give its number, e.g. "
                    f"data.columns.{role}={usual}"
                )
            if chosen.upper() not in COLUMNS:
                raise DataError(
                    f"{self.path}: CoNLL-U has no column '{chosen}' for data.columns.{role}{nearest(chosen, COLUMNS)}"
                )
            chosen = COLUMNS.index(chosen.upper())
        if not -self.fields <= chosen < self.fields:
            raise DataError(
                f"{self.where(self.rows[0][0])}: no column {chosen} for the {role}, the line has {self.fields} "
                f"field{'s' * (self.fields != 1)}; set the columns by number with ",
                Advice("data.columns.words", "0"),
                " and ",
                Advice("data.columns.tags", "-1"),
            )
        return chosen


def read_conll(path):
    """The `ConllTable` of a file.

    Columns are separated by tabs in lines that hold one, else by spaces. Comments (lines that begin with # in a file of
    tabs) are not words.

    Raises:
        DataError: no sentence in the file.
    """
    sentences, document, marked = [], 0, False
    width, tabbed, numbered, begins = None, False, False, True
    for number, line in numbered_lines(read_text(path)):
        if is_border(line):
            begins = True
            if line.startswith("-DOCSTART-"):
                document, marked = document + 1, True
            continue
        has_tab = "\t" in line
        if line.startswith("#") and not has_tab and (tabbed or (width is None and _is_comment(line))):
            if line.startswith("# newdoc"):
                document, marked = document + 1, True
            continue
        fields = fields_of(line)
        if width is None:
            width, first_line, tabbed, numbered = len(fields), number, has_tab, is_conllu(line)
        if numbered and len(fields) == width and _NO_WORD.fullmatch(fields[0]):
            continue
        if begins:
            sentences.append((number, Sentence([], [], document)))
            begins = False
        sentence = sentences[-1][1]
        sentence.words.append(fields)
        sentence.lines.append(number)
        if len(fields) != width and sentence.problem is None:
            sentence.problem = BadRow(
                f"{len(fields)} field{'s' * (len(fields) != 1)} where line {first_line} has {width}; every word must have "
                "the same columns",
                line=number,
            )
    if not sentences:
        raise DataError(f"{path} holds no sentence; it must hold at least one")
    return ConllTable(str(path), sentences, "conll", fields=width, is_conllu=numbered, marks_documents=marked)


def is_border(line):
    """Whether a line ends a sentence: an empty one, also with a byte order mark (joined files), or -DOCSTART-."""
    return not line.strip("\ufeff").strip() or line.startswith("-DOCSTART-")


def is_conllu(line):
    """Whether a line of a word shows that the file is CoNLL-U."""
    fields = line.split("\t")
    return len(fields) == 10 and (fields[0].isdecimal() or bool(_NO_WORD.fullmatch(fields[0])))


def _is_comment(line):
    # Before the first word of a CoNLL-U file: "# sent_id = 1", "# text = ...".
    return "=" in line or line.startswith(("# newdoc", "# newpar"))
