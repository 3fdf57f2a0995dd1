"""CoNLL and CoNLL-U: recognized by content, read with their quirks, and written with the predicted tags."""

import pytest
import tiny

from bert_tf.errors import DataError
from bert_tf.tasks import build_task
from bert_tf.tasks.rows.conll import read_conll
from bert_tf.tasks.rows.files import file_format
from bert_tf.tasks.tagging.files import read_tagged, write_conll
from bert_tf.tasks.tagging.tagging_config import TaggingColumns

NAMES = ("eng.train", "eng.testb", "wnut.annotated", "train", "words.txt", "dev.tsv", "a.iob", "a.conll", "a.conllu")
EIGHT = "\t_\t_\t_\t_"
# A comment, a multiword token, an empty node, and a second document.
CONLLU = f"""# newdoc id = a
# text = du Pain
1-2\tdu\t_\t_\t_\t_{EIGHT}
1\tde\tde\tADP\tE\t_{EIGHT}
2\tle\tle\tDET\tD\t_{EIGHT}
2.1\t_\t_\t_\t_\t_{EIGHT}
3\tPain\tpain\tNOUN\tN\t_{EIGHT}

# newdoc id = b
1\tOui\toui\tINTJ\tI\t_{EIGHT}
"""
CONLL = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def read(path, labelled=True, **columns):
    return read_tagged(read_conll(path), TaggingColumns(**columns), labelled)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [CONLL, CONLLU], ids=["conll", "conllu"])
def test_the_content_says_what_it_is(write, name, text):
    path = write(name, text)
    assert file_format(path, tagged=True) == "conll"
    words = [["EU", "rejects"], ["Peter", "Blackburn"]] if text == CONLL else [["de", "le", "Pain"], ["Oui"]]
    assert read(path).words == words


def test_columns_are_numbered(write):
    path = write("eng.train", CONLL)
    examples = read(path)
    assert (examples.labels, examples.lines) == ([["I-ORG", "O"], ["I-PER", "I-PER"]], [3, 6])
    assert read(path, tags=1).labels == [["NNP", "VBZ"], ["NNP", "NNP"]]
    assert read(write("a.conll", "one\ntwo\n\nthree"), labelled=False).words == [["one", "two"], ["three"]]
    assert read(write("a.conllu", CONLLU)).labels == [["ADP", "DET", "NOUN"], ["INTJ"]]


def test_comments_and_numbers_are_words_where_they_are_no_conllu(write):
    path = write("a.conllu", "# sent_id = 1\n# text = # 1\n1\t#\tSYM\n2\t1\tNUM\n")
    assert read(path, words=1).words == [["#", "1"]]
    assert read(write("b.conll", "# SYM\n1 NUM\n1-2 O\n3.5 O\n")).words == [["#", "1", "1-2", "3.5"]]


@pytest.mark.parametrize("space", [" ", "\t"])
def test_other_white_space_belongs_to_words(write, space):
    words = ["10\u00a0000", "\u00a0", "a\u3000b", "New\u00a0York" if space == " " else "New York"]
    path = write("a.conll", "".join(f"{word}{space}O\n" for word in words) + f"\nAnna{space}B-PER\n")
    assert file_format(path, tagged=True) == "conll" and read(path).words == [words, ["Anna"]]


def test_what_cannot_be_recognized_gets_one_error(write):
    path = write("eng.train", "EU I-ORG\nrejects O\n")  # one sentence: it may be a table as well
    message = "neither the ending '.train' nor .* data.columns.format=tsv .or csv, jsonl, conll"
    with pytest.raises(DataError, match=message):
        build_task({"kind": "tagging"}, tiny.tokenizer()).read(path)
    task = build_task({"kind": "tagging"}, tiny.tokenizer(), {"format": "conll"})
    assert task.read(path).labels == [["I-ORG", "O"]]


def test_columns_of_conllu_have_names(write):
    path = write("a.conllu", CONLLU)
    for columns in ({"words": "lemma", "tags": "XPOS"}, {"words": 2, "tags": 4}):
        examples = read(path, **columns)
        assert (examples.words[0], examples.labels) == (["de", "le", "pain"], [["E", "D", "N"], ["I"]])
    with pytest.raises(DataError, match="CoNLL-U has no column 'XPO' for data.columns.tags; did you mean 'XPOS'"):
        read(path, tags="XPO")
    with pytest.raises(DataError, match="the columns of CoNLL files have no names; .* data.columns.tags=-1"):
        read(write("a.conll", CONLL), tags="XPOS")


def test_a_line_with_only_a_byte_order_mark_is_empty(write):
    path = write("dev.conll", "a\tO\n\nb\tO\n\ufeff\n")  # the end of WNUT-17's emerging.dev.conll
    assert read(path).words == [["a"], ["b"]] and file_format(path, tagged=True) == "conll"


def test_predictions_stand_in_the_file_that_was_read(write):
    examples = read(write("eng.testb", CONLL), labelled=False)
    assert write_conll(examples, [["B-X", "O"], ["O", "B-Y"]]).splitlines() == [
        "-DOCSTART- -X- -X- O O", "", "EU NNP I-NP I-ORG B-X", "rejects VBZ I-VP O O", "", "Peter NNP I-NP I-PER O",
        "Blackburn NNP I-NP I-PER B-Y",
    ]  # fmt: skip
    examples = read(write("a.conllu", CONLLU), labelled=False)
    for column, old in (("UPOS", ("ADP", "DET", "NOUN", "INTJ")), (4, "EDNI")):
        expected = CONLLU
        for tag in old:
            expected = expected.replace(f"\t{tag}\t", "\tX\t")
        assert write_conll(examples, [["X", "X", "X"], ["X"]], column) == expected
    assert write_conll(examples, [["ADP", "DET", "NOUN"], ["INTJ"]]) == CONLLU


def test_predict_writes_conll_by_the_ending(tmp_path):
    task = build_task({"kind": "tagging", "labels": ["O", "B-PER", "I-PER"], "sequence_length": 16}, tiny.tokenizer())
    words = [{"word": "anna", "tag": "B-PER"}, {"word": "met", "tag": "O"}], [{"word": "john", "tag": "I-PER"}]
    answers = [
        {"line": 1, "words": words[0]},
        {"line": 2, "error": "the line is empty"},
        {"line": 3, "words": words[1]},
    ]
    examples = task.read(["anna met", "john"], labelled=False)
    assert task.predictions_file(examples, answers, tmp_path / "a.jsonl") is None
    assert task.predictions_file(examples, answers, tmp_path / "a.CONLL") == "anna\tB-PER\nmet\tO\n\njohn\tI-PER\n\n"
