"""How T5 writes the examples of GLUE, SuperGLUE, SQuAD and others as a source and a target text.

Raffel et al. 2020, section 2.4 and appendix D; google-research/text-to-text-transfer-transformer
`t5/data/preprocessors.py` (`glue`, `stsb`, `record`, `wsc_simple`, `squad`, `summarize`, `translate`), and its answers'
way back, `t5/data/postprocessors.py`. No TensorFlow is imported.
"""

import dataclasses
import re
import string
from collections.abc import Callable

from bert_tf.parsing import parse_number

#: The names that `translate` writes; the published models know the first four.
LANGUAGES = {
    "en": "English", "de": "German", "fr": "French", "ro": "Romanian", "cs": "Czech", "es": "Spanish", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
}  # fmt: skip
#: What T5 writes for a missing label. Nothing is trained on it.
UNKNOWN = "<unk>"


@dataclasses.dataclass(frozen=True)
class TextPair:
    """One example.

    Attributes:
        source: what the model reads.
        target: what it should write; None without a label.
        answers: every accepted target, where there may be several.
        group: what examples of one question have in common; None for an example on its own.
        identifier: the example's id in its file; None for none.
        label: of WSC, whether the target is the referent. Others are evaluated, but not trained on.
    """

    source: str
    target: str | None
    answers: tuple = ()
    group: object = None
    identifier: object = None
    label: bool = True


@dataclasses.dataclass(frozen=True)
class T5Format:
    """One format.

    Attributes:
        name: the value of `task.format`.
        convert: function from a row, a dict of its file's keys, to a list of `TextPair`. It raises KeyError for a
            missing key and ValueError for a value that it cannot use.
        judged_as: what `text_metrics.SCORES` measures the answers as: "labels", "number", "answers", "referent",
            "texts".
        metric: what chooses the best epoch.
        labels: the target words, in the order of T5's label numbers; None where targets are free text.
        field: the key of the only text, which a plain str then is; None for several.
        scorer: of answers, a name of `spans.scorer.SCORERS`.
        glue: the name in `GLUE_TASKS` of the columns of its TSV files; None for files with named keys.

    Example:
        from bert_tf.tasks.text_to_text.t5_formats import t5_format

        row = {"premise": "It rained.", "hypothesis": "It was dry.", "label": "contradiction"}
        (pair,) = t5_format("cb").convert(row)
        pair.source, pair.target  # ('cb hypothesis: It was dry. premise: It rained.', 'contradiction')
    """

    name: str
    convert: Callable
    judged_as: str
    metric: str
    labels: tuple | None = None
    field: str | None = None
    glue: str | None = None
    scorer: str = "squad"


def _label(row, labels):
    """The target word of a row: its label may be the word, its number, or true and false; None without one."""
    label = row.get("label")
    if label is None or label == -1 or label == "-1":
        return None
    if isinstance(label, bool) or str(label).lower() in ("true", "false"):
        label = int(str(label).lower() == "true")
    if str(label) in labels:
        return str(label)
    if re.fullmatch("[0-9]{1,9}", str(label)) and int(label) < len(labels):
        return labels[int(label)]
    raise ValueError(f"the label {label!r} is none of {', '.join(labels)}, nor a number below {len(labels)}")


def _identifier(row):
    return next((row[key] for key in ("idx", "index", "id") if key in row), None)


def _classification(prefix, keys, labels):
    """`glue` of the original: `{prefix} {key}: {text} {key}: {text}`."""

    def convert(row):
        source = " ".join([prefix, *(f"{key}: {row[key]}" for key in keys)])
        return [TextPair(source, _label(row, labels), identifier=_identifier(row))]

    return convert


def _stsb(row):
    score = row.get("label", row.get("score"))
    # Ties go to the even fifth, in Python as in TensorFlow.
    number = None if score is None else parse_number(str(score))
    if score is not None and number is None:
        raise ValueError(f"the score is {score!r}; it must be a number")
    target = None if number is None else f"{round(number * 5) / 5:.1f}"
    source = f"stsb sentence1: {row['sentence1']} sentence2: {row['sentence2']}"
    return [TextPair(source, target, identifier=_identifier(row))]


def _multirc(row):
    passage = row["passage"]["text"] if isinstance(row.get("passage"), dict) else row["paragraph"]
    questions = row["passage"]["questions"] if isinstance(row.get("passage"), dict) else [row]
    pairs = []
    for question in questions:
        for answer in question["answers"] if "answers" in question else [{**row, "text": row["answer"]}]:
            source = f"multirc question: {question['question']} answer: {answer['text']} paragraph: {passage}"
            source = re.sub("</?b>", "", source.replace("<br>", " "))
            group = (str(_identifier(row)), str(question.get("idx")), question["question"])
            target = _label(answer, _FALSE_TRUE)
            pairs.append(TextPair(source, target, group=group, identifier=_identifier(answer)))
    return pairs


def _record(row):
    nested = isinstance(row["passage"], dict)
    text = row["passage"]["text"] if nested else row["passage"]
    if nested:
        entities = sorted({text[e["start"] : e["end"] + 1] for e in row["passage"]["entities"]})
    else:
        entities = row["entities"]
    passage = re.sub(r"(\.|\?|\!|\"|\')\n@highlight\n", r"\1 ", text)
    passage = re.sub(r"\n@highlight\n", ". ", passage)
    pairs = []
    for question in row["qas"] if nested else [row]:
        answers = question.get("answers") or []
        answers = tuple(sorted({a["text"] for a in answers}) if nested else answers)
        source = f"record query: {question['query']} entities: {', '.join(entities)} passage: {passage}"
        group = (str(_identifier(row)), str(question.get("idx")), question["query"])
        for target in answers or (None,):  # an example for each answer
            pairs.append(TextPair(source, target, answers, group, _identifier(question)))
    return pairs


def _wsc(row):
    """The pronoun between asterisks; the target is what it may refer to, right or wrong."""
    spans = row.get("target") if isinstance(row.get("target"), dict) else row
    pronoun, index, words = spans["span2_text"], int(spans["span2_index"]), row["text"].split(" ")
    # In one example of the official files the index is that of the word before; in another a mark follows the pronoun.
    place = next((i for i in (index, index + 1) if i < len(words) and words[i].startswith(pronoun)), None)
    if place is None:
        raise ValueError(f"span2_text {pronoun!r} is not word {index} of the text")
    rest = words[place][len(pronoun) :]
    marked = [*words[:place], f"*{pronoun}*", *([rest] if rest else []), *words[place + 1 :]]
    right = _label(row, _FALSE_TRUE)
    target = None if right is None else spans["span1_text"]
    return [TextPair(f"wsc: {' '.join(marked)}", target, identifier=_identifier(row), label=right == "True")]


def _spaced(text):
    """The text with spaces around its punctuation (ASCII), and runs of white space as one space."""
    return _collapsed(re.sub(f"([{re.escape(string.punctuation)}])", r" \1 ", text))


def _collapsed(text):
    return re.sub("[\t\n\f\r ]+", " ", text)


def _squad(row):
    if "data" in row:  # the official file: one object
        paragraphs = [paragraph for article in row["data"] for paragraph in article["paragraphs"]]
        return [pair for p in paragraphs for qa in p["qas"] for pair in _squad({"context": p["context"], **qa})]
    column = row.get("answers") or []
    texts = column["text"] if isinstance(column, dict) else [a["text"] if isinstance(a, dict) else a for a in column]
    answers = tuple(_spaced(text) for text in texts)
    source = _collapsed(f"question: {_spaced(row['question'])} context: {_spaced(row['context'])}")
    return [TextPair(source, answers[0] if answers else None, answers, identifier=_identifier(row))]


def _trivia_qa(row):
    """A question without a context (Roberts et al. 2020, `t5_closed_book_qa`), as the package datasets has it."""
    answer = row.get("answer") or {}
    aliases = tuple(answer.get("aliases") or ())
    target, source = answer.get("value"), f"trivia_qa question: {row['question']}"
    identifier = row.get("question_id", _identifier(row))
    return [TextPair(source, target, aliases or ((target,) if target else ()), identifier=identifier)]


def _summarize(row):
    article = next(key for key in ("article", "document", "dialogue", "text") if key in row or key == "text")
    summary = next((row[key] for key in ("highlights", "summary", "target") if key in row), None)
    return [TextPair(f"summarize: {row[article]}", summary, identifier=_identifier(row))]


def _translate(source, target):
    prefix = f"translate {LANGUAGES[source]} to {LANGUAGES[target]}: "

    def convert(row):
        texts = row["translation"] if isinstance(row.get("translation"), dict) else row
        return [TextPair(prefix + texts[source], texts.get(target), identifier=_identifier(row))]

    return convert


_FALSE_TRUE = ("False", "True")
_ENTAILMENT = ("entailment", "not_entailment")
_THREE = ("entailment", "neutral", "contradiction")
_RTE_KEYS = ("hypothesis", "premise")


def _axb(row):
    named = {"premise": row["sentence1"], "hypothesis": row["sentence2"]} if "sentence1" in row else {}
    return _classification("rte", _RTE_KEYS, _ENTAILMENT)(row | named)


def _words(name, keys, labels, metric="accuracy", prefix=None, glue=None):
    """A format whose targets are labels."""
    field = keys[0] if len(keys) == 1 else None
    return T5Format(name, _classification(prefix or name, keys, labels), "labels", metric, labels, field, glue)


_FORMATS = [
    # GLUE.
    _words("cola", ("sentence",), ("unacceptable", "acceptable"), "matthews", glue="cola"),
    _words("sst2", ("sentence",), ("negative", "positive"), glue="sst2"),
    _words("mrpc", ("sentence1", "sentence2"), ("not_equivalent", "equivalent"), "f1", glue="mrpc"),
    _words("qqp", ("question1", "question2"), ("not_duplicate", "duplicate"), "f1", glue="qqp"),
    T5Format("stsb", _stsb, "number", "spearman", glue="stsb"),
    _words("mnli", _RTE_KEYS, _THREE, glue="mnli"),
    _words("qnli", ("question", "sentence"), _ENTAILMENT, glue="qnli"),
    _words("rte", ("sentence1", "sentence2"), _ENTAILMENT, glue="rte"),
    _words("wnli", ("sentence1", "sentence2"), ("not_entailment", "entailment"), glue="wnli"),
    # SuperGLUE.
    _words("boolq", ("passage", "question"), _FALSE_TRUE),
    _words("cb", _RTE_KEYS, ("entailment", "contradiction", "neutral"), "f1_macro"),
    _words("copa", ("choice1", "choice2", "premise", "question"), ("choice1", "choice2")),
    T5Format("multirc", _multirc, "labels", "f1", _FALSE_TRUE),
    T5Format("record", _record, "answers", "answer_f1"),
    _words("superglue_rte", _RTE_KEYS, _ENTAILMENT, prefix="rte"),
    T5Format("axb", _axb, "labels", "matthews", _ENTAILMENT),
    _words("axg", _RTE_KEYS, _ENTAILMENT, prefix="rte"),
    _words("wic", ("sentence1", "sentence2", "word"), _FALSE_TRUE),
    T5Format("wsc", _wsc, "referent", "accuracy"),
    T5Format("squad", _squad, "answers", "answer_f1"),
    T5Format("trivia_qa", _trivia_qa, "answers", "answer_em", field="question", scorer="triviaqa"),
    T5Format("summarize", _summarize, "texts", "rougeLsum", field="text"),
]
_BY_NAME = {format.name: format for format in _FORMATS}
#: The values of `task.format`.
T5_FORMATS = (*_BY_NAME, "translate")


def t5_format(name, languages=None):
    """The `T5Format` of a name in `T5_FORMATS`.

    Args:
        name: the value of `task.format`.
        languages: of "translate": two keys of `LANGUAGES`, from and to.

    Example:
        from bert_tf.tasks.text_to_text.t5_formats import t5_format

        (pair,) = t5_format("translate", ("de", "en")).convert({"de": "Das ist gut.", "en": "That is good."})
        pair.source, pair.target  # ('translate German to English: Das ist gut.', 'That is good.')
    """
    if name == "translate":
        return T5Format(name, _translate(*languages), "texts", "bleu", field=languages[0])
    return _BY_NAME[name]


#: GLUE's names of the two texts in the order of its columns, where they are not those of `convert`'s keys.
_GLUE_KEYS = {
    "cola": ("sentence",), "sst2": ("sentence",), "qqp": ("question1", "question2"), "qnli": ("question", "sentence"),
    "mnli": ("premise", "hypothesis"),
}  # fmt: skip


def glue_row(name, *texts):
    """The row, as `convert` takes it, of the texts in the columns that `GLUE_TASKS` names.

    Example:
        from bert_tf.tasks.text_to_text.t5_formats import glue_row

        glue_row("mnli", "It rained.", "It was dry.")  # {'premise': ..., 'hypothesis': ...}
    """
    keys = _GLUE_KEYS.get(name, ("sentence1", "sentence2"))
    return dict(zip(keys, texts))


# -- from answers to labels ----------------------------------------------------------------------------

_DETERMINERS = set(
    "a an few her his each every many much my our some that the their these this those which whose your".split()
)


def class_of(answer, labels):
    """The number of an answer among the labels; -1 for an answer that is none of them."""
    return labels.index(answer) if answer in labels else -1


def number_of(answer):
    """The float that an answer spells; -1 for an answer that spells none."""
    try:
        number = float(answer)
    except ValueError:
        return -1.0
    return number if abs(number) < float("inf") else -1.0


def names_referent(answer, referent):
    """1 if an answer of WSC names the referent, 0 if it does not, -1 if it is empty.

    Without capitals and determiners, the words of one must be among those of the other.
    """
    answer, referent = (
        " ".join(word for word in text.strip().lower().split(" ") if word not in _DETERMINERS)
        for text in (answer, referent)
    )
    if not answer:
        return -1
    if ("'" in answer) != ("'" in referent):  # "Bob" is not "Bob's hat"
        return 0
    answer_words, referent_words = set(answer.split(" ")), set(referent.split(" "))
    return int(answer_words <= referent_words or referent_words <= answer_words)
