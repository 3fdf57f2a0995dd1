"""Files of tagged words, and the scheme of their entity tags."""

import dataclasses

from absl import logging

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.config import WORDS_NAMES
from bert_tf.tasks.tables.columns import read_columns, read_words
from bert_tf.tasks.tables.files import file_format, read_table
from bert_tf.tasks.tables.labels import no_label
from bert_tf.tasks.tagging.conll import read_conll
from bert_tf.tasks.tagging.entities import find_odd, marks_entities
from bert_tf.tasks.tagging.schemes import find_break, find_scheme, prefixes_of, rewrite


def read_tagged(path, columns, labelled):
    """Reads sentences of tagged words, or for `predict` texts too.

    Args:
        path: a CoNLL or CoNLL-U file, JSON or Parquet of words and tags; unlabelled also a table or lines of texts.
        columns: `ColumnsConfig`.
        labelled: whether every word must have a tag.

    Returns:
        `Examples` with `words`, or with `texts`.

    Raises:
        DataError: with file, line and what to do.
    """
    format = file_format(path, columns.format, tagged=True)
    if format in ("jsonl", "parquet"):
        names = read_table(path, format).names()
        if labelled or columns.text in names or any(name in names for name in WORDS_NAMES):
            return read_words(path, format, columns, labelled)
    if format == "conll" or (format == "lines" and labelled):
        return read_conll(path, columns.text, columns.label, labelled)
    if labelled:
        raise DataError(
            f"{path}: tagging reads CoNLL files, or JSON with the keys words and tags; if this is one, set "
            "task.columns.format=conll or task.columns.format=jsonl"
        )
    return read_columns(path, format, columns, labelled=False, pairs=False)


def check_tags(examples, known=None):
    """Raises DataError for a tag that is missing, is what pandas writes for one, or is no Unicode text; names the word."""
    problems = {tag: no_label(tag, known or (), "tag") for tags in examples.labels for tag in tags}
    if any(problems.values()):
        index, position = _find(examples, lambda tag: problems[tag])
        raise DataError(f"{examples.where_word(index, position)}: {problems[examples.labels[index][position]]}")


def _find(examples, wanted):
    """(number of the sentence, number of the word) of the first tag for which `wanted` is true."""
    return next((i, j) for i, tags in enumerate(examples.labels) for j, tag in enumerate(tags) if wanted(tag))


def scheme_of_file(examples, given=None, known=None):
    """The scheme of the entity tags of labelled examples, whose tags keep its rules.

    Args:
        examples: `Examples` with `words` and `labels`.
        given: `columns.tag_scheme`; None: recognized. "conlleval" allows entity tags in any order.
        known: the label set, which may hold tags of any form. None: tags that are no entity tags among those that are
            are taken for mistakes.

    Returns:
        One of `SCHEMES`; for "conlleval" the scheme that the prefixes show, else IOB2. None where the tags mark no
        entities.

    Raises:
        DataError: the first tag that is no entity tag among those that are, or that breaks the scheme; or a scheme for
            tags that mark no entities.
    """
    tags = {tag for sentence in examples.labels for tag in sentence}
    odd = find_odd(tags) if known is None else set()
    if odd:
        index, position = _find(examples, odd.__contains__)
        word, tag = examples.words[index][position], examples.labels[index][position]
        raise DataError(
            f"{examples.where_word(index, position)}: of '{word}' the tag {brief(tag)} is no entity tag (O, B-..., I-...), as "
            "others of the file are, and so no entity could be scored; correct it, or, if the tags mark no entities, list all "
            "of them in task.labels"
        )
    if not marks_entities(tags):
        if given and tags - {"O"}:
            raise DataError(
                f"{examples.path}: task.columns.tag_scheme={given} is for tags that mark entities (O, B-..., I-...), and "
                f"'{min(tag for tag in tags if not marks_entities([tag, 'B-X']))}' does not; remove task.columns.tag_scheme"
            )
        return None
    if given == "conlleval":
        return prefixes_of(tags) or "IOB2"
    scheme = given or find_scheme(examples.labels)
    if scheme is None or given:
        _check(examples, scheme or prefixes_of(tags) or "IOB2", given)
    return scheme


def _check(examples, scheme, given):
    for index, tags in enumerate(examples.labels):
        found = find_break(tags, scheme)
        if found:
            position, why = found
            instead = "" if given or scheme in ("BIOES", "BILOU") else ", and other tags of the file are no IOB1"
            raise DataError(
                f"{examples.where_word(index, position)}: {why}{instead}; correct the tag, or read the entities that "
                "conlleval finds with --set task.columns.tag_scheme=conlleval"
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
            f"{problem}; put a line -DOCSTART- before each document, or train with task.context=file, which takes a whole "
            "file as one document, or with task.context=sentence"
        )
    logging.warning("%s: each sentence is read alone", problem)
