"""Files of tagged words, and the scheme of their entity tags."""

import dataclasses
import os

from absl import logging

from bert_tf.errors import Advice, DataError
from bert_tf.hub import local_file
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.rows.conll import ConllTable, read_conll
from bert_tf.tasks.rows.files import file_format, numbered_lines, read_text
from bert_tf.tasks.rows.labels import no_label
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.rows.values import BadRow, strings
from bert_tf.tasks.tagging.entities import find_odd, marks_entities
from bert_tf.tasks.tagging.schemes import find_break, find_scheme, prefixes_of, rewrite
from bert_tf.tasks.texts.text_task import read_texts


def open_tagged(data, columns, labelled, row_of):
    """The table of tagged words, or for `predict` of texts too.

    Args:
        data: a CoNLL or CoNLL-U file, JSON or Parquet of words and tags; unlabelled also a table or lines of texts; or
            Python objects.
        columns: `TaggingColumns`.
        labelled: whether every word must have a tag.
        row_of: of `open_table`.

    Raises:
        DataError: a file in another format.
    """
    if not isinstance(data, (str, os.PathLike)):
        return open_table(data, columns, row_of)
    path = str(local_file(data))
    format = file_format(path, columns.format, tagged=True)
    if format == "conll" or (format == "lines" and labelled):
        return read_conll(path)
    if labelled and format not in ("jsonl", "parquet"):
        raise DataError(
            f"{path}: tagging reads CoNLL files, or JSON with the keys words and tags; if this is one, set ",
            Advice("data.columns.format", "conll"),
            " or ",
            Advice("data.columns.format", "jsonl"),
        )
    return open_table(path, columns, format=format)


def read_tagged(table, columns, labelled, label_set=()):
    """`Examples` of a table of `open_tagged`, with `words`, or with `texts`.

    Args:
        table, columns, labelled: of `open_tagged`.
        label_set: the label set, as far as it is known.

    Raises:
        DataError: a missing column, or a bad row; with file, line and what to do.
    """
    if isinstance(table, ConllTable):
        return _read_sentences(table, columns, labelled, label_set)
    key = table.find(columns, "words", labelled)
    if key is None:
        return read_texts(table, columns)
    tags_key = table.find(columns, "tags") if labelled else None
    identifier = table.id_key()

    def read(row):
        words, tags = strings(row.get(key), key), None
        if labelled:
            tags = _tags(strings(row.get(tags_key), tags_key), label_set)
            if len(tags) != len(words):
                raise BadRow(
                    f"{len(words)} {key} and {len(tags)} {tags_key}; every word must have one tag, correct the row"
                )
        elif not words and table.is_file:
            raise BadRow("there is no word")
        return [Example(words=words, label=tags, id=table.id_of(row, identifier))]

    chosen = {"words": key} | ({"tags": tags_key} if labelled else {})
    return read_examples(table, read, columns, labelled, chosen, identifier)


def _read_sentences(table, columns, labelled, label_set):
    words = table.column(columns.words, "words", 0, 1)
    tags = table.column(columns.tags, "tags", -1, 3) if labelled else None
    if labelled and tags % table.fields == words % table.fields:
        raise DataError(
            f"{table.where(table.rows[0][0])}: one field, so no tag beside the word; only predict takes files without tags"
        )

    def read(sentence):
        if sentence.problem:
            raise sentence.problem
        label = _tags([fields[tags] for fields in sentence.words], label_set, sentence.lines) if labelled else None
        document = sentence.document if table.marks_documents else None
        texts = [fields[words].strip(" ") for fields in sentence.words]
        return [Example(words=texts, label=label, document=document, word_lines=sentence.lines)]

    chosen = {"words": words} | ({"tags": tags} if labelled else {})
    return read_examples(table, read, columns, labelled, chosen)


def _tags(tags, label_set, lines=None):
    """The tags of a sentence without white space around them; `lines` are those of its words, for messages."""
    tags = [tag.strip() for tag in tags]
    for position, tag in enumerate(tags):
        problem = no_label(tag, label_set, "tag")
        if problem:
            raise BadRow(problem, line=lines and lines[position], word=position + 1)
    return tags


def write_conll(examples, tags, tag_column=None):
    """The text of a CoNLL file with these tags.

    Examples of a CoNLL file give that file again. In CoNLL-U the tags replace those of the tag column; in other files
    they are one more column at the end, O for -DOCSTART- lines, as conlleval reads them. Other examples give a line for
    each word with its tag, and an empty line after each sentence.

    Args:
        examples: `Examples` with `words`.
        tags: for each example a list of tags, one for each word.
        tag_column: of `TaggingColumns`.
    """
    if examples.word_lines is None:
        pairs = (zip(words, of_words, strict=True) for words, of_words in zip(examples.words, tags, strict=True))
        return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in pairs)
    of_line = {}
    for lines, of_words in zip(examples.word_lines, tags, strict=True):
        of_line |= zip(lines, of_words, strict=True)
    table, result = read_conll(examples.path), []
    column = table.column(tag_column, "tags", -1, 3) if table.is_conllu else None
    for number, line in numbered_lines(read_text(examples.path)):
        tag = of_line.get(number)
        if tag is not None and table.is_conllu:
            fields = line.split("\t")
            fields[column] = tag
            line = "\t".join(fields)
        elif tag is not None or line.startswith("-DOCSTART-"):
            line = line.rstrip() + ("\t" if "\t" in line else " ") + (tag or "O")
        result.append(line + "\n")
    return "".join(result)


def _find(examples, is_looked_for):
    """(number of the sentence, number of the word) of the first tag for which `is_looked_for` is true."""
    return next((i, j) for i, tags in enumerate(examples.labels) for j, tag in enumerate(tags) if is_looked_for(tag))


def scheme_of_file(examples, chosen=None, label_set=None):
    """The scheme of the entity tags of labelled examples, whose tags keep its rules.

    Args:
        examples: `Examples` with `words` and `labels`.
        chosen: `TaggingColumns.tag_scheme`; None: recognized. "conlleval" allows entity tags in any order.
        label_set: the label set, which may hold tags of any form. None: tags that are not entity tags among those that are
            are taken for mistakes.

    Returns:
        One of `SCHEMES`; for "conlleval" the scheme that the prefixes show, else IOB2. None where the tags mark no
        entities.

    Raises:
        DataError: the first tag that is not an entity tag among those that are, or that breaks the scheme; or a scheme for
            tags that mark no entities.
    """
    tags = {tag for sentence in examples.labels for tag in sentence}
    odd = find_odd(tags) if label_set is None else set()
    if odd:
        index, position = _find(examples, odd.__contains__)
        word, tag = examples.words[index][position], examples.labels[index][position]
        raise DataError(
            f"{examples.where_word(index, position)}: of '{word}' the tag {brief(tag)} is not an entity tag (O, B-..., I-...), as "
            "others of the file are, and so no entity could be scored; correct it, or, if the tags mark no entities, list all "
            "of them in task.labels"
        )
    if not marks_entities(tags):
        if chosen and tags - {"O"}:
            raise DataError(
                f"{examples.path}: data.columns.tag_scheme={chosen} is for tags that mark entities (O, B-..., I-...), and "
                f"'{min(tag for tag in tags if not marks_entities([tag, 'B-X']))}' does not; remove data.columns.tag_scheme"
            )
        return None
    if chosen == "conlleval":
        return prefixes_of(tags) or "IOB2"
    scheme = chosen or find_scheme(examples.labels)
    if scheme is None or chosen:
        _check(examples, scheme or prefixes_of(tags) or "IOB2", chosen)
    return scheme


def _check(examples, scheme, chosen):
    for index, tags in enumerate(examples.labels):
        break_ = find_break(tags, scheme)
        if break_:
            position, why = break_
            instead = "" if chosen or scheme in ("BIOES", "BILOU") else ", and other tags of the file are not IOB1"
            raise DataError(
                f"{examples.where_word(index, position)}: {why}{instead}; correct the tag, or read the entities that "
                "conlleval finds with ",
                Advice("data.columns.tag_scheme", "conlleval"),
            )


def in_scheme(examples, scheme):
    """`Examples` with the tags rewritten in a scheme."""
    return dataclasses.replace(examples, labels=[rewrite(tags, scheme) for tags in examples.labels])


def without_documents(path, labelled):
    """Refuses a labelled file that does not mark its documents, for `task.context=document`; warns of another one.

    Raises:
        DataError: the file is labelled.
    """
    problem = (
        f"{path} marks no documents (-DOCSTART- lines, or '# newdoc' in CoNLL-U), which task.context=document needs"
    )
    if labelled:
        raise DataError(
            f"{problem}; put a line -DOCSTART- before each document, or train with ",
            Advice("task.context", "file"),
            ", which takes a whole file as one document, or with ",
            Advice("task.context", "sentence"),
        )
    logging.warning("%s: each sentence is read alone", problem)
