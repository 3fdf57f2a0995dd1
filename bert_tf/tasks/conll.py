"""CoNLL files: one word a line with its tags in columns, a blank line between sentences."""

import re

from bert_tf.errors import DataError
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.files import numbered_lines, read_text

# Of CoNLL-U, in place of a word's number: of the words that a written one stands for ("1-2"), and of
# a word that is not written ("8.1").
_NO_WORD = re.compile(r"\d+[-.]\d+")


def read_conll(path, word_column=None, tag_column=None, labelled=True):
    """Reads sentences of tagged words.

    Columns are separated by tabs where the line holds one, else by white space. `-DOCSTART-` lines
    are skipped, and so are the comments of CoNLL-U (lines that begin with # in a file of tabs).

    A file whose first line holds ten fields with tabs between them, the first a number, is CoNLL-U
    (universaldependencies.org/format.html): its words are the syntactic ones, so that "1-2 du" and
    the empty node "8.1" are left out.

    Args:
        path: the file.
        word_column, tag_column: counted from 0, or from the end where negative. None: the first
            and the last; in CoNLL-U the second (FORM) and the fourth (UPOS).
        labelled: False where the tags are not wanted and may be absent.

    Returns:
        `Examples` with `words`, and `labels` if `labelled`.

    Raises:
        DataError: a line with another number of fields than the first, a column that is not there,
            no sentence at all.
    """
    sentences, tags, lines = [], [], []
    width = first_line = None
    tabbed = numbered = False
    fresh = True
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            fresh = True
            continue
        if line.startswith("-DOCSTART-"):
            fresh = True
            continue
        if width is None:
            tabbed = "\t" in line
        if line.startswith("#") and "\t" not in line and (tabbed or width is None and _is_comment(line)):
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        if width is None:
            width, first_line = len(fields), number
            numbered = tabbed and width == 10 and (fields[0].isdecimal() or bool(_NO_WORD.fullmatch(fields[0])))
            if word_column is None:
                word_column = 1 if numbered else 0
            if tag_column is None:
                tag_column = 3 if numbered else -1
            needed = [("words", word_column)] + ([("tags", tag_column)] if labelled else [])
            for what, column in needed:
                if not -width <= column < width:
                    raise DataError(
                        f"{path}, line {number}: no column {column} for the {what}, the line has "
                        f"{width} field{'s' * (width != 1)}; set the columns by number with --set "
                        "task.columns.text=0 and --set task.columns.label=-1"
                    )
            if labelled and tag_column % width == word_column % width:
                raise DataError(
                    f"{path}, line {number}: one field, so there is no tag beside the word; "
                    "only predict takes files without tags"
                )
        if len(fields) != width:
            raise DataError(
                f"{path}, line {number}: {len(fields)} field{'s' * (len(fields) != 1)} where line "
                f"{first_line} has {width}; every word must have the same columns"
            )
        if numbered and _NO_WORD.fullmatch(fields[0]):
            continue
        if fresh:
            sentences.append([])
            tags.append([])
            lines.append(number)
            fresh = False
        sentences[-1].append(fields[word_column].strip())
        if labelled:
            tags[-1].append(fields[tag_column].strip())
    if not sentences:
        raise DataError(f"{path} holds no sentence; it must hold at least one")
    return Examples(
        words=sentences,
        labels=tags if labelled else None,
        path=str(path),
        lines=lines,
        columns={"words": word_column, **({"tags": tag_column} if labelled else {})},
    )


def _is_comment(line):
    # Before the first word of a CoNLL-U file: "# sent_id = 1", "# text = ...".
    return "=" in line or line.startswith(("# newdoc", "# newpar"))
