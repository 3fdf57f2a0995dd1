"""T5's formats, letter by letter: what `t5/data/preprocessors.py` makes of one example of each data set."""

import pytest

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks.text_to_text.files import open_texts, read_format
from bert_tf.tasks.text_to_text.t5_formats import T5_FORMATS, class_of, names_referent, number_of, t5_format
from bert_tf.tasks.text_to_text.text_to_text_config import TextToTextConfig

PAIR = {"sentence1": "A plane.", "sentence2": "An air plane."}
RTE = {"premise": "It rained.", "hypothesis": "It was dry."}
ANSWERS = [{"text": "Anna", "idx": 1, "label": 1}, {"text": "Paul", "idx": 2, "label": 0}]
SENTENCES = "<b>Sent 1: </b>Anna left.<br><b>Sent 2: </b>Paul came.<br>"
QUESTION = {"question": "Who left?", "idx": 7, "answers": ANSWERS}
MULTIRC = {"idx": 4, "passage": {"text": SENTENCES, "questions": [QUESTION]}}
ENTITIES = [{"start": start, "end": end} for start, end in ((9, 12), (0, 3), (35, 38), (17, 20))]
QUERY = {"idx": 5, "query": "@placeholder left.", "answers": [{"text": name} for name in ("Paul", "Anna", "Paul")]}
HIGHLIGHTS = 'Anna met Paul in Rome."\n@highlight\nPaul left\n@highlight\nAnna stayed'
RECORD = {"idx": 3, "passage": {"text": HIGHLIGHTS, "entities": ENTITIES}, "qas": [QUERY]}
WSC = {
    "text": "Mark told Pete many lies about himself .",
    "target": {"span1_index": 0, "span1_text": "Mark", "span2_index": 6, "span2_text": "himself"},
    "label": True,
}
SQUAD = {
    "context": "Super Bowl 50 (2016) was it's game.", "question": "Which game?", "id": "q1",
    "answers": [{"text": "it's game.", "answer_start": 25}, {"text": "game", "answer_start": 30}],
}  # fmt: skip
RECORD_SOURCE = 'record query: @placeholder left. entities: Anna, Paul, Rome passage: Anna met Paul in Rome." Paul left. Anna stayed'

# format, row, source, target: of the docstrings of preprocessors.py, or worked out by hand from its code.
EXAMPLES = [
    ("cola", {"sentence": "Bill whistled.", "label": "1"}, "cola sentence: Bill whistled.", "acceptable"),
    ("sst2", {"sentence": "uneasy mishmash ", "label": 0}, "sst2 sentence: uneasy mishmash ", "negative"),
    ("mrpc", PAIR | {"label": 0}, "mrpc sentence1: A plane. sentence2: An air plane.", "not_equivalent"),
    ("qqp", {"question1": "Why do I easily get bored of my friends?", "question2": "Why do I get bored of friends so quickly?", "label": 1},
     "qqp question1: Why do I easily get bored of my friends? question2: Why do I get bored of friends so quickly?", "duplicate"),
    ("stsb", {"sentence1": "Three more US soldiers killed in Afghanistan", "sentence2": "NATO Soldier Killed in Afghanistan", "label": 1.8},
     "stsb sentence1: Three more US soldiers killed in Afghanistan sentence2: NATO Soldier Killed in Afghanistan", "1.8"),
    ("stsb", PAIR | {"score": "2.5"}, "stsb sentence1: A plane. sentence2: An air plane.", "2.4"),
    ("stsb", PAIR | {"score": "5.000"}, "stsb sentence1: A plane. sentence2: An air plane.", "5.0"),
    ("mnli", RTE | {"label": 2}, "mnli hypothesis: It was dry. premise: It rained.", "contradiction"),
    ("qnli", {"question": "Who?", "sentence": "He.", "label": "not_entailment"}, "qnli question: Who? sentence: He.", "not_entailment"),
    ("rte", PAIR | {"label": 0}, "rte sentence1: A plane. sentence2: An air plane.", "entailment"),
    ("wnli", PAIR | {"label": "1"}, "wnli sentence1: A plane. sentence2: An air plane.", "entailment"),
    ("boolq", {"question": "is it", "passage": "It is.", "label": True}, "boolq passage: It is. question: is it", "True"),
    ("cb", RTE | {"label": "neutral"}, "cb hypothesis: It was dry. premise: It rained.", "neutral"),
    ("copa", {"premise": "My body cast a shadow.", "choice1": "The sun was rising.", "choice2": "The grass was cut.", "question": "cause", "label": 0},
     "copa choice1: The sun was rising. choice2: The grass was cut. premise: My body cast a shadow. question: cause", "choice1"),
    ("multirc", MULTIRC, "multirc question: Who left? answer: Anna paragraph: Sent 1: Anna left. Sent 2: Paul came. ", "True"),
    ("record", RECORD, RECORD_SOURCE, "Anna"),
    ("superglue_rte", RTE | {"label": "not_entailment"}, "rte hypothesis: It was dry. premise: It rained.", "not_entailment"),
    ("axb", PAIR | {"label": "entailment"}, "rte hypothesis: An air plane. premise: A plane.", "entailment"),
    ("axg", RTE | {"label": "entailment"}, "rte hypothesis: It was dry. premise: It rained.", "entailment"),
    ("wic", {"word": "place", "sentence1": "a place", "sentence2": "to place", "label": False, "start1": 2},
     "wic sentence1: a place sentence2: to place word: place", "False"),
    ("wsc", WSC, "wsc: Mark told Pete many lies about *himself* .", "Mark"),
    ("squad", SQUAD, "question: Which game ? context: Super Bowl 50 ( 2016 ) was it ' s game . ", "it ' s game . "),
    ("trivia_qa", {"question": "Who was 007?", "question_id": "tc_1", "answer": {"value": "Bond", "aliases": ["James Bond", "Bond"]}},
     "trivia_qa question: Who was 007?", "Bond"),
    ("summarize", {"article": "Long text.", "highlights": "Text."}, "summarize: Long text.", "Text."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "row", "source", "target"), EXAMPLES)
def test_sources_and_targets(name, row, source, target):
    pair = t5_format(name).convert(row)[0]
    assert (pair.source, pair.target) == (source, target)


def test_every_format_has_an_example():
    assert {name for name, *_ in EXAMPLES} | {"translate"} == set(T5_FORMATS)


def test_translation():
    translate = t5_format("translate", ("en", "ro")).convert
    (pair,) = translate({"translation": {"en": "Yes.", "ro": "Da."}})
    assert (pair.source, pair.target) == ("translate English to Romanian: Yes.", "Da.")


@pytest.mark.parametrize(("settings", "message"), [
    ({"format": "translate"}, r"belong together; set task.languages=\[en, de\]"),
    ({"format": "squad", "languages": ("en", "de")}, "belong together; remove them"),
    ({"format": "translate", "languages": ("en", "xx")}, r"task.languages is \[en, xx\]; it must be two of en, de"),
    ({"format": "translate", "languages": ("en", "en")}, "it must be two of"),
])  # fmt: skip
def test_languages_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        TextToTextConfig(kind="text_to_text", **settings)


def test_rows_of_several_examples():
    anna, paul = t5_format("multirc").convert(MULTIRC)
    assert paul.source == anna.source.replace("answer: Anna", "answer: Paul") and paul.target == "False"
    assert paul.group == anna.group and (anna.identifier, paul.identifier) == (1, 2)
    first, second = t5_format("record").convert(RECORD)
    assert (first.target, second.target, second.answers) == ("Anna", "Paul", ("Anna", "Paul"))
    assert first.group == second.group and second.source == RECORD_SOURCE
    paragraphs = [{"context": SQUAD["context"], "qas": [SQUAD, SQUAD]}]
    official = {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}
    assert [pair.source for pair in t5_format("squad").convert(official)] == [EXAMPLES[21][2]] * 2


def test_the_two_odd_pronouns_of_wsc():
    """`_wsc_inputs` writes these two by hand."""
    text = 'The boy continued to whip the pony , and eventually the pony threw him over. John laughed out quite loud. "Good for him," he said. '
    row = {"text": text, "target": {"span1_text": "the boy", "span2_index": 22, "span2_text": "him"}, "label": False}
    (pair,) = t5_format("wsc").convert(row)
    assert pair.source.rstrip() == (
        "wsc: The boy continued to whip the pony , and eventually the pony threw him over. John laughed out quite loud. "
        '"Good for *him* ," he said.'
    )
    assert (pair.target, pair.label) == ("the boy", False)
    target = {"span1_text": "a", "span2_index": 4, "span2_text": "it"}
    row = {"text": "they might want to use it , but", "target": target}
    assert t5_format("wsc").convert(row)[0].source == "wsc: they might want to use *it* , but"


def test_answers_become_labels_again():
    assert [class_of(text, ("False", "True")) for text in ("True", "true", "")] == [1, -1, -1]
    assert [number_of(text) for text in ("2.6", "2.6 or so", "", "nan", "inf")] == [2.6, -1, -1, -1, -1]
    cases = [
        ("Mark", "Mark", 1), ("the fuzzy Bunny", "bunny", 1), ("Bob", "Bob's hat", 0), ("the", "Mark", -1),
        ("Pete", "Mark", 0),
    ]  # fmt: skip
    assert [names_referent(answer, referent) for answer, referent, _ in cases] == [right for *_, right in cases]


def read(path, labelled, name, languages=None):
    config, format = TextToTextConfig("text_to_text", format=name, languages=languages), t5_format(name, languages)
    table, columns = open_texts(path, format, config.default_columns(), labelled)
    return read_format(table, format, columns, labelled)


def test_files(write):
    cola = read(write("cola.tsv", "gj04\t1\t\tOur friends won't buy this.\ngj04\t0\t*\tThe \"book.\n"), True, "cola")
    assert (cola.texts[1], cola.lines) == ('cola sentence: The "book.', [1, 2])
    assert cola.labels == ["acceptable", "unacceptable"]
    test = read(write("test.tsv", "index\tsentence\n5\tBill whistled.\n"), False, "cola")
    assert (test.texts, test.ids, test.labels) == (["cola sentence: Bill whistled."], [{"id": "5"}], None)
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    qqp = read(write("qqp.tsv", header + "1\t2\t3\tHow?\tWhy?\t0\n4\t5\tbroken\n"), True, "qqp")
    assert (qqp.texts, qqp.skipped) == (["qqp question1: How? question2: Why?"], 1)
    mnli = read(write("mnli.tsv", "sentence1\tsentence2\tgold_label\nCream\tProduct\tneutral\n"), True, "mnli")
    assert (mnli.texts, mnli.labels) == (["mnli hypothesis: Product premise: Cream"], ["neutral"])
    multirc = read(write("a.jsonl", [MULTIRC, MULTIRC]), True, "multirc")
    assert (multirc.lines, multirc.labels) == ([1, 1, 2, 2], ["True", "False"] * 2)
    pairs = read(write("ende.tsv", "en\tde\nYes.\tJa.\n"), True, "translate", ("en", "de"))
    assert (pairs.texts, pairs.labels) == (["translate English to German: Yes."], ["Ja."])
    lines = read(write("lines.txt", "Yes.\n\nNo.\n"), False, "translate", ("en", "de"))
    assert lines.texts[1] == "translate English to German: No."
    assert lines.unusable_rows == [{"line": 2, "error": "the line is empty"}]


@pytest.mark.parametrize(("name", "row", "message"), [
    ("rte", {"sentence1": "a", "label": 0}, "line 1: there is no key 'sentence2', which task.format=rte reads; its keys are sentence1, label"),
    ("rte", PAIR | {"label": "maybe"}, "line 1: the label 'maybe' is none of entailment, not_entailment, nor a number below 2"),
    ("rte", PAIR, "line 1: the row has no label, which only predict allows"),
    ("rte", PAIR | {"label": "１"}, "line 1: the label .１. is none of entailment"),
    ("stsb", PAIR | {"score": "1_0"}, "line 1: the score is .1_0.; it must be a number"),
    ("wsc", WSC | {"text": "no pronoun here at all in this one"}, "line 1: span2_text 'himself' is not word 6 of the text"),
    ("record", {"passage": "a", "query": "b", "entities": 3, "idx": 1}, "line 1: the row is not as the files of task.format=record"),
])  # fmt: skip
def test_messages(name, row, message, write):
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        read(write("a.jsonl", [row]), True, name)
