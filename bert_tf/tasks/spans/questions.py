"""Questions about contexts, as Python lists: the examples of question answering."""

import dataclasses
from typing import ClassVar

from bert_tf.encodings import is_unicode
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.rows.values import BadRow


@dataclasses.dataclass(frozen=True)
class Answers:
    """The accepted answers of one question.

    Attributes:
        texts: tuple of str.
        starts: tuple of int, where each begins in the context, in code points. MRQA has other texts than places.
        ends: tuple of int, where each ends.
        impossible: whether the context does not answer the question; there are no texts then.

    Example:
        Answers(texts=("Paris",), starts=(16,), ends=(21,))  # of "Anna was born in Paris."
    """

    texts: tuple = ()
    starts: tuple = ()
    ends: tuple = ()
    impossible: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Questions(Examples):
    """Examples of question answering: `texts` are the questions, `text_pairs` the contexts, `labels` are `Answers`.

    Questions of one context have the same str object in `text_pairs`.

    Example:
        questions = Questions(texts=["Where?"], text_pairs=["In Paris."], path="dev.json", lines=[1], ids=[{"id": "5a1"}])
        questions.where(0)  # "dev.json, question '5a1'"
    """

    shown: ClassVar = {"text": "texts"}  # not the contexts: many questions share one

    def where(self, index):
        """ "dev.json, question '5a1'", for messages."""
        name = self.ids[index].get("id") if self.ids else None
        return super().where(index) if name is None else f"{self.path}, question '{name}'"


def check_answers(spans, context, impossible):
    """`Answers` of one question.

    Args:
        spans: list of (text, start, end).
        context: str.
        impossible: whether the file says that there is no answer.

    Raises:
        BadRow: no answer of a possible question, an answer of an impossible one, or one that is not at its place.
    """
    if impossible:
        return Answers(impossible=True)
    if not spans:
        raise BadRow('there is no answer; a question without one needs "is_impossible": true')
    for text, start, end in spans:
        if not isinstance(text, str) or isinstance(start, bool) or not isinstance(start, int):
            raise BadRow(
                f"an answer is {brief(text)} at {brief(start)}; it must be a text and the number of its first "
                "character in the context"
            )
        if not (0 <= start < end <= len(context)):
            raise BadRow(
                f"the answer {brief(text)} is said to be at characters {start} to {end}, but the context has "
                f"{len(context)} characters; correct it"
            )
    return Answers(*(tuple(part) for part in zip(*spans)))


def check_text(value, name):
    """Raises BadRow for a question or context that is not a str, or holds white space alone."""
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"the {name} is {brief(value)}; it must be a text")
    if not is_unicode(value):
        raise BadRow(f"the {name} {brief(value)} is not Unicode text (a lone surrogate); correct it")
