"""A question with its options, as all files of multiple choice are read. No TensorFlow is imported."""

import dataclasses
import string

from bert_tf.parsing import brief
from bert_tf.tasks.rows.values import BadRow

#: How the options of a file without letters of its own are lettered.
LETTERS = tuple(string.ascii_uppercase)


@dataclasses.dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        context: the text that the question is about; "" for none.
        question: the question, or the beginning that all options continue; "" for none.
        options: tuple of str, two at least.
        label: int, the number of the right option from 0; None where it is not known.
        letters: tuple of str, how the file calls the options; None where it numbers them.
        group: the part of the data set that is measured for itself, such as "middle" of RACE; None for none.
        identifier: of the file; None for none.

    Example:
        Question("It rained.", "Why?", ("Because.", "It did not."), label=0)
    """

    context: str
    question: str
    options: tuple
    label: int | None = None
    letters: tuple | None = None
    group: str | None = None
    identifier: str | int | None = None

    @property
    def text(self):
        """The context and the question, for people."""
        return " ".join(text for text in (self.context, self.question) if text)


def options_of(texts):
    """The options of a row as a tuple of str; empty ones at the end, as rows with fewer options have them, are left out.

    Raises:
        BadRow: an option that is empty or not a text, or fewer than two.
    """
    for number, text in enumerate(texts, start=1):
        if isinstance(text, bool) or not isinstance(text, (str, int, float, type(None))):
            raise BadRow(f"option {number} is {brief(text)}; it must be a text")
    options = ["" if text is None else str(text) for text in texts]
    while options and not options[-1].strip():
        options.pop()
    for number, option in enumerate(options, start=1):
        if not option.strip():
            raise BadRow(f"option {number} is empty; write it, or remove it if there are fewer options")
    if len(options) < 2:
        raise BadRow(f"there are {len(options)} options; there must be two at least")
    return tuple(options)


def label_of(value, names):
    """The number of the option that a label names; None for an absent label.

    Args:
        value: str or int; "", None and -1, the datasets package's number of an unknown class, are absent labels.
        names: str of each option, such as its letter.

    Raises:
        BadRow: a label that names none of the options.
    """
    label = "" if value is None else str(value).strip()
    if label in ("", "-1"):
        return None
    if label not in names:
        raise BadRow(f"the label {brief(label)} is none of {', '.join(map(brief, names))}; correct it")
    return list(names).index(label)


def numbers(count, first=0):
    """("0", "1", ...), the names of `count` options that a file numbers."""
    return tuple(str(number) for number in range(first, first + count))
