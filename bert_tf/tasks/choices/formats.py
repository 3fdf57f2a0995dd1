"""The data sets of multiple choice: which columns or keys their files have, and how a row becomes questions.

No TensorFlow is imported. `reading.py` reads the files.
"""

import dataclasses
from collections.abc import Callable

from bert_tf.tasks.choices.question import LETTERS, Question, label_of, numbers, options_of
from bert_tf.tasks.rows.values import BadRow, list_of, text_of

#: What jiant asks where COPA's files say "cause" or "effect".
COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


@dataclasses.dataclass(frozen=True)
class ChoiceFormat:
    """A data set's own files.

    Attributes:
        name: the value of `task.format`.
        read: function(row) -> list of `Question`; raises `BadRow`.
        keys: the columns or keys by which a file is recognized: all of them must be there.
        recognizes: function(first row as a dict) -> bool; None: by `keys`.
        question_joins, blank: the defaults of the settings of the same names.
        reads_dicts: whether `read` takes a row as a dict by the names of the columns; else as the table has it.
    """

    name: str
    read: Callable | None
    keys: tuple = ()
    recognizes: Callable | None = None
    question_joins: str = "option"
    blank: str = ""
    reads_dicts: bool = True


def _numbered(row, prefix, first=0):
    """The values under `prefix` + number, as far as there are any."""
    values = []
    while f"{prefix}{first + len(values)}" in row:
        values.append(row[f"{prefix}{first + len(values)}"])
    return options_of(values)


def _identifier(row, *names):
    return next((row[name] for name in names if name in row), None)


def _swag(row):
    options = _numbered(row, "ending")
    label = label_of(row.get("label"), numbers(len(options)))
    context, beginning = text_of(row, "sent1"), text_of(row, "sent2")
    return [Question(context, beginning, options, label, identifier=_identifier(row, "row number", ""))]


def _copa(row):
    options = _numbered(row, "choice", 1)
    direction = text_of(row, "question").strip()
    if direction not in COPA_QUESTIONS:
        raise BadRow(f"'question' is '{direction}'; it must be cause or effect")
    # Parquet files of the datasets package name the classes.
    names = ("choice1", "choice2") if str(row.get("label")).startswith("choice") else numbers(len(options))
    label, question = label_of(row.get("label"), names), COPA_QUESTIONS[direction]
    return [Question(text_of(row, "premise"), question, options, label, identifier=_identifier(row, "idx"))]


def _arc(row):
    question = row.get("question")
    # AI2's own files nest the question; those of Hugging Face's datasets have two lists.
    if isinstance(question, dict):
        choices = list_of(question, "choices")
        if not all(isinstance(choice, dict) for choice in choices):
            raise BadRow("'choices' must be a list of objects with 'text' and 'label'")
        stem = text_of(question, "stem")
        texts, letters = ([choice.get(key) for choice in choices] for key in ("text", "label"))
    else:
        stem, choices = text_of(row, "question"), row.get("choices")
        if not isinstance(choices, dict):
            raise BadRow("'choices' must be an object with the lists 'text' and 'label'")
        texts, letters = list_of(choices, "text"), list_of(choices, "label")
    options, letters = options_of(texts), tuple(str(letter) for letter in letters)
    if len(letters) != len(options):
        raise BadRow(f"there are {len(options)} options and {len(letters)} letters; there must be as many")
    label = label_of(row.get("answerKey"), letters)
    return [Question("", stem, options, label, letters, identifier=_identifier(row, "id"))]


def arc_row(fields):
    """The only question of a row of ARC as CSV without a header: the question, its options, the letter of the right one.

    Options may be lettered or numbered from 1. A row of `predict` may lack the letter.
    """
    answer = fields[-1].strip()
    lettered = len(answer) == 1 and (answer in LETTERS or answer.isdecimal())
    options = options_of(fields[1:-1] if lettered or not answer else fields[1:])
    names = numbers(len(options), 1) if answer.isdecimal() else LETTERS[: len(options)]
    label = label_of(answer, names) if lettered else None
    return [Question("", fields[0], options, label, names)]


def _race(row):
    """All questions of an article; Hugging Face's datasets have one question in a row."""
    article = text_of(row, "article")
    if "questions" in row:
        stems, options = list_of(row, "questions"), list_of(row, "options")
        answers = row.get("answers") or [None] * len(stems)
        if not len(stems) == len(options) == len(answers):
            raise BadRow(
                f"there are {len(stems)} questions, {len(options)} lists of options and {len(answers)} answers; there "
                "must be as many"
            )
    else:
        stems, options, answers = [text_of(row, "question")], [list_of(row, "options")], [row.get("answer")]
    name = str(_identifier(row, "id", "example_id") or "")
    group = next((level for level in ("middle", "high") if name.startswith(level)), None)
    questions = []
    for number, (question, texts, answer) in enumerate(zip(stems, options, answers)):
        if not isinstance(question, str) or not isinstance(texts, list):
            raise BadRow(f"question {number} must be a text with a list of options; correct it")
        choices = options_of(texts)
        letters = LETTERS[: len(choices)]
        identifier = f"{name}-{number}" if "questions" in row else name
        questions.append(Question(article, question, choices, label_of(answer, letters), letters, group, identifier))
    return questions


def _rocstories(row):
    story = " ".join(text_of(row, f"InputSentence{number}") for number in range(1, 5))
    options = _numbered(row, "RandomFifthSentenceQuiz", 1)
    label = label_of(row.get("AnswerRightEnding"), numbers(len(options), 1))
    return [Question(story, "", options, label, identifier=_identifier(row, "InputStoryid"))]


def _is_arc(row):
    return isinstance(row.get("question"), dict) or isinstance(row.get("choices"), dict)


def _is_race(row):
    return "article" in row and "options" in row and ("questions" in row or "answer" in row)


_FORMATS = [
    ChoiceFormat("swag", _swag, ("sent1", "sent2", "ending0")),
    ChoiceFormat("race", _race, recognizes=_is_race, blank="_"),
    ChoiceFormat("arc", _arc, recognizes=_is_arc),
    ChoiceFormat("copa", _copa, ("premise", "choice1", "choice2", "question"), question_joins="context"),
    ChoiceFormat("rocstories", _rocstories, ("InputSentence1", "RandomFifthSentenceQuiz1")),
    ChoiceFormat("columns", None),
]
#: Name -> `ChoiceFormat`. "columns" is any other table; see `reading.py`.
FORMATS = {format.name: format for format in _FORMATS}


def recognize(row):
    """The `ChoiceFormat` of a file whose first row, as a dict, is this one; None for none of the data sets."""
    for format in FORMATS.values():
        if format.recognizes(row) if format.recognizes else format.keys and row.keys() >= set(format.keys):
            return format
    return None
