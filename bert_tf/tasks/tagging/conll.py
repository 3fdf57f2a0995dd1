"""CoNLL files: one word a line with its tags in columns, an empty line between sentences."""

import re

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.tables.files import numbered_lines, read_text
from bert_tf.tasks.tables.sniffing import fields_of

#: The columns of CoNLL-U.
COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
# CoNLL-U numbers a written word that is split into several ("1-2"), and a word that is not written ("8.1"), so.
_NO_WORD = re.compile(r"\d+[-.]\d+")


def read_conll(path, word_column=None, tag_column=None, labelled=True):
    """Reads sentences of tagged words.

    Columns are separated by tabs in lines that hold one, else by spaces. A document begins at a `-DOCSTART-` line
    and at a comment `# newdoc` of CoNLL-U; these and other comments (lines that begin with # in a file of tabs) are no
    words.

    A file is CoNLL-U (universaldependencies.org/format.html) if its first line holds ten fields with tabs between
    them, the first a number. Its words are the syntactic ones: "1-2 du" and the empty node "8.1" are left out.

    Args:
        path: the file.
        word_column, tag_column: counted from 0, or from the end where negative; in CoNLL-U also a name, such as "XPOS".
            None: the first and the last; in CoNLL-U "FORM" and "UPOS".
        labelled: False if tags are not needed and may be absent.

    Returns:
        `Examples` with `words`, `documents` if the file marks them, and `labels` if `labelled`.

    Raises:
        DataError: a line with another number of fields than the first, a missing column, or no sentence.
    """
    sentences, tags, lines = [], [], []  # for each sentence its words, their tags and their lines
    documents, document, marked = [], 0, False
    width = None
    tabbed = numbered = False
    begins = True
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
            width, first_line, tabbed = len(fields), number, has_tab
            numbered = _is_conllu(line)
            word_column = _column(path, "text", word_column, numbered, 1 if numbered else 0)
            tag_column = _column(path, "label", tag_column, numbered, 3 if numbered else -1)
            _check_columns(f"{path}, line {number}", width, word_column, tag_column if labelled else None)
        if len(fields) != width:
            raise DataError(
                f"{path}, line {number}: {len(fields)} field{'s' * (len(fields) != 1)} where line "
                f"{first_line} has {width}; every word must have the same columns"
            )
        if numbered and _NO_WORD.fullmatch(fields[0]):
            continue
        if begins:
            sentences.append([])
            tags.append([])
            lines.append([])
            documents.append(document)
            begins = False
        sentences[-1].append(fields[word_column].strip(" "))
        lines[-1].append(number)
        if labelled:
            tags[-1].append(fields[tag_column].strip())
    if not sentences:
        raise DataError(f"{path} holds no sentence; it must hold at least one")
    columns = {"words": word_column} | ({"tags": tag_column} if labelled else {})
    return Examples(
        words=sentences,
        labels=tags if labelled else None,
        path=str(path),
        lines=[of_words[0] for of_words in lines],
        columns=columns,
        documents=documents if marked else None,
        word_lines=lines,
    )


def is_border(line):
    """Whether a line ends a sentence: an empty one, also with a byte order mark (joined files), or -DOCSTART-."""
    return not line.strip("\ufeff").strip() or line.startswith("-DOCSTART-")


def write_conll(examples, tags, tag_column=None):
    """The text of a CoNLL file with these tags.

    Examples of a CoNLL file give that file again. In CoNLL-U the tags replace those of the tag column; in other files
    they are one more column at the end, O for -DOCSTART- lines, as conlleval reads them. Other examples give a line for
    each word with its tag, and an empty line after each sentence.

    Args:
        examples: `Examples` with `words`.
        tags: for each example a list of tags, one for each word.
        tag_column: of `read_conll`.
    """
    if examples.word_lines is None:
        pairs = (zip(words, of_words, strict=True) for words, of_words in zip(examples.words, tags, strict=True))
        return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in pairs)
    of_line = {}
    for lines, of_words in zip(examples.word_lines, tags, strict=True):
        of_line |= zip(lines, of_words, strict=True)
    result, numbered = [], None
    for number, line in numbered_lines(read_text(examples.path)):
        tag = of_line.get(number)
        if tag is not None and numbered is None:
            numbered = _is_conllu(line)
        if tag is not None and numbered:
            fields = line.split("\t")
            fields[_column(examples.path, "label", tag_column, True, 3)] = tag
            line = "\t".join(fields)
        elif tag is not None or line.startswith("-DOCSTART-"):
            line = line.rstrip() + ("\t" if "\t" in line else " ") + (tag or "O")
        result.append(line + "\n")
    return "".join(result)


def _is_conllu(line):
    """Whether a line of a word shows that the file is CoNLL-U."""
    fields = line.split("\t")
    return len(fields) == 10 and (fields[0].isdecimal() or bool(_NO_WORD.fullmatch(fields[0])))


def _column(path, key, given, numbered, usual):
    """The number of a column."""
    if not isinstance(given, str):
        return usual if given is None else given
    if numbered and given.upper() in COLUMNS:
        return COLUMNS.index(given.upper())
    if numbered:
        raise DataError(f"{path}: CoNLL-U has no column '{given}' for task.columns.{key}{nearest(given, COLUMNS)}")
    raise DataError(
        f"{path}: task.columns.{key} is '{given}', but the columns of CoNLL files have no names; give its number, e.g. "
        f"--set task.columns.{key}={0 if key == 'text' else -1}"
    )


def _check_columns(where, width, word_column, tag_column):
    for what, column in (("words", word_column), ("tags", tag_column)):
        if column is not None and not -width <= column < width:
            raise DataError(
                f"{where}: no column {column} for the {what}, the line has {width} field{'s' * (width != 1)}; set the "
                "columns by number with --set task.columns.text=0 and --set task.columns.label=-1"
            )
    if tag_column is not None and tag_column % width == word_column % width:
        raise DataError(f"{where}: one field, so no tag beside the word; only predict takes files without tags")


def _is_comment(line):
    # Before the first word of a CoNLL-U file: "# sent_id = 1", "# text = ...".
    return "=" in line or line.startswith(("# newdoc", "# newpar"))
