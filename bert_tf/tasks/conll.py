"""CoNLL files: one word a line with its tags in columns, a blank line between sentences."""

from bert_tf.errors import DataError
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.files import numbered_lines, read_text


def read_conll(path, word_column=0, tag_column=-1, labelled=True):
    """Reads sentences of tagged words.

    Columns are separated by tabs where the line holds one, else by white space. `-DOCSTART-` lines
    are skipped, and so are the comments of CoNLL-U (lines that begin with # in a file of tabs).

    Args:
        path: the file.
        word_column, tag_column: counted from 0, or from the end where negative.
        labelled: False where the tags are not wanted and may be absent.

    Returns:
        `Examples` with `words`, and `labels` if `labelled`.

    Raises:
        DataError: a line with another number of fields than the first, a column that is not there,
            no sentence at all.
    """
    sentences, tags, lines = [], [], []
    width = first_line = None
    tabbed = False
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
            needed = [("words", word_column)] + ([("tags", tag_column)] if labelled else [])
            for what, column in needed:
                if not -width <= column < width:
                    raise DataError(
                        f"{path}, line {number}: no column {column} for the {what}, the line has "
                        f"{width} field{'s' * (width != 1)}; set columns.text and columns.label"
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
