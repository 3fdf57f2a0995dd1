"""Schemes of entity tags: recognized, checked, rewritten, and scored as conlleval does."""

import random
import re

import numpy as np
import pytest
import tiny

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import build_task, load_task
from bert_tf.tasks.tagging.entities import entities, entity_scores
from bert_tf.tasks.tagging.schemes import SCHEMES, find_break, find_scheme, rewrite
from bert_tf.tasks.tagging.sequences import Words

# "Anna Lee" and "Bert" touch and are of one type; "Rome" is of another one.
SAME = {
    "IOB1": ["I-PER", "I-PER", "B-PER", "O", "I-LOC"], "IOB2": ["B-PER", "I-PER", "B-PER", "O", "B-LOC"],
    "BIOES": ["B-PER", "E-PER", "S-PER", "O", "S-LOC"], "BILOU": ["B-PER", "L-PER", "U-PER", "O", "U-LOC"],
}  # fmt: skip


@pytest.mark.parametrize(("tags", "scheme"), [
    *((tags, scheme) for scheme, tags in SAME.items()),
    (["O", "B-PER", "I-PER", "B-LOC"], "IOB2"), (["I-PER", "I-LOC"], "IOB1"),
    (["O", "B-PER", "I-PER", "B-PER", "I-LOC"], None),  # the second B- is IOB2, the I- IOB1
    (["B-PER", "I-PER", "E-PER", "U-PER"], None), (["NN", "VB", "IN"], None), (["O", "O"], None), (["B-PER", "IN"], None),
])  # fmt: skip
def test_a_scheme_is_recognized(tags, scheme):
    assert find_scheme([["O"], tags]) == scheme


@pytest.mark.parametrize(("tags", "scheme", "index", "why"), [
    (["O", "B-PER"], "IOB1", 1, "'B-PER' does not follow an entity of its type"),
    (["B-PER", "I-LOC"], "IOB2", 1, "'I-LOC' follows 'B-PER', but an entity begins with B-"),
    (["E-PER"], "IOB2", 0, "'E-PER' has the prefix E-, which IOB2 does not have"),
    (["B-PER", "O"], "BIOES", 1, "not finished where 'O' follows; its last word has E-, a single one S-"),
    (["S-PER", "B-PER"], "BIOES", 1, "not finished where the sentence ends"),
    (["S-PER", "E-PER"], "BIOES", 1, "'E-PER' follows 'S-PER', but it continues an entity"),
])  # fmt: skip
def test_a_tag_that_breaks_its_scheme_is_found(tags, scheme, index, why):
    found, reason = find_break(tags, scheme)
    assert found == index and why in reason


def chunks(tags):
    """The entities of conlleval's `startOfChunk` and `endOfChunk`, one pass with the tags B, I, E, S and O."""
    found, start = [], None
    for i, tag in enumerate([*tags, "O"]):
        before = tags[i - 1] if i else "O"
        p, q = before[0].translate({76: "E", 85: "S"}), tag[0].translate({76: "E", 85: "S"})
        changed = before[2:] != tag[2:]
        ends = p in "ES" or (p in "BI" and q in "BSO") or (p != "O" and changed)
        starts = q in "BS" or (p in "ESO" and q in "EI") or (q != "O" and changed)
        if start is not None and ends:
            found.append((tags[start][2:], start, i - 1))
            start = None
        if starts and tag != "O":
            start = i
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scores_are_conllevals_in_every_scheme(scheme):
    rng = random.Random(1)
    prefixes = {"IOB1": "BI", "IOB2": "BI"}.get(scheme, scheme.replace("O", ""))
    tags = ["O", *(f"{p}-{t}" for p in prefixes for t in ("PER", "LOC"))]
    gold, said = ([[rng.choice(tags) for _ in range(rng.randint(1, 9))] for _ in range(60)] for _ in range(2))
    said = [[*tags, *["O"] * 9][: len(right)] for tags, right in zip(said, gold)]
    sides = [{(i, *e) for i, one in enumerate(side) for e in chunks(one)} for side in (gold, said)]
    right = len(sides[0] & sides[1])
    expected = {"precision": right / len(sides[1]), "recall": right / len(sides[0])}
    expected["f1"] = 2 * right / (len(sides[0]) + len(sides[1]))
    assert right > 5
    assert entity_scores(gold, said) == pytest.approx(expected)
    for other in SCHEMES:
        written = [[rewrite(one, other) for one in side] for side in (gold, said)]
        assert find_scheme(written[0]) in (other, "IOB2" if other == "IOB1" else other)
        assert entity_scores(*written) == pytest.approx(expected), "the scheme changes no score"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_is_rewritten_in_every_other(scheme):
    for tags in SAME.values():
        assert rewrite(tags, scheme) == SAME[scheme]
        assert entities(tags) == chunks(tags) == [("PER", 0, 1), ("PER", 2, 2), ("LOC", 4, 4)]
    assert rewrite(["O", "I-PER", "O"], scheme)[1][0] == {"IOB1": "I", "IOB2": "B", "BIOES": "S", "BILOU": "U"}[scheme]


def conll(scheme):
    return "".join(f"{word} {tag}\n" for word, tag in zip("Anna Lee Bert in Rome".split(), SAME[scheme]))


def task_of(columns=None, **settings):
    return build_task({"kind": "tagging"} | settings, tiny.tokenizer(), columns)


def test_files_of_several_schemes_become_that_of_the_training_file(write, tmp_path):
    paths = {scheme: write(scheme, f"-DOCSTART- O\n\n{conll(scheme)}\nin O\n") for scheme in SCHEMES}
    task, examples = tiny.learned(paths["IOB1"], task_of())
    assert examples.labels == [SAME["IOB1"], ["O"]]
    assert (task.state.scheme, task.state.file_scheme) == ("IOB1", "IOB1")
    for path in paths.values():
        assert task.read(path).labels[0] == SAME["IOB1"]
    task, examples = tiny.learned(paths["IOB1"], task_of(scheme="BIOES"))
    assert examples.labels[0] == SAME["BIOES"]
    assert len(task.labels) == 9 and (task.state.scheme, task.state.file_scheme) == ("BIOES", "IOB1")
    assert task.read({"words": [["Rome"]], "tags": [["I-LOC"]]}).labels == [["S-LOC"]]
    task.save(tmp_path)
    again = load_task(tmp_path, task.tokenizer)
    assert (again.state.scheme, again.state.file_scheme) == ("BIOES", "IOB1")


def test_labels_that_are_given_have_a_scheme_of_their_own(write):
    task = task_of(labels=["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])
    assert task.read(write("dev.train", f"{conll('BIOES')}\n{conll('BIOES')}")).labels[0] == SAME["IOB2"]


@pytest.mark.parametrize(("columns", "scheme"), [({}, "IOB2"), ({"tag_scheme": "IOB1"}, "IOB1")])
def test_predictions_are_in_the_scheme_of_the_file(columns, scheme):
    task = task_of(scheme="BIOES", columns=columns)
    text, ends = "Anna Lee Bert in Rome", [4, 8, 13, 16, 21]
    words = Words([[1]] * 5, [0, *(end + 1 for end in ends[:-1])], ends)
    task = task.learn(task.read({"words": [text.split()], "tags": [SAME[scheme]]}))
    logits = np.eye(len(task.labels))[[task.labels.index(tag) for tag in SAME["BIOES"]]]
    answer = task._answer(text, words, logits, SAME["BIOES"], task.state.file_scheme)
    assert [word["tag"] for word in answer["words"]] == SAME[scheme]
    assert [entity["text"] for entity in answer["entities"]] == ["Anna Lee", "Bert", "Rome"]


@pytest.mark.parametrize(("text", "columns", "message"), [
    ("a B-PER\nb O\n\nc O\nd I-PER\n", {}, "a.conll, line 5: 'I-PER' follows 'O', but an entity begins with B- in IOB2"),
    ("a S-PER\nb E-PER\n", {}, "line 2: 'E-PER' follows 'S-PER', but it continues an entity in BIOES"),
    ("a NN\nb VB\n", {"tag_scheme": "IOB1"}, "'NN' does not; remove data.columns.tag_scheme"),
])  # fmt: skip
def test_broken_tags_are_refused(write, text, columns, message):
    path = write("a.conll", text)
    with pytest.raises(DataError, match=re.escape(message)) as error:
        tiny.learned(path, task_of(columns=columns))
    if "NN" in text:
        return
    assert "data.columns.tag_scheme=conlleval" in str(error.value)
    task = task_of(columns={"tag_scheme": "conlleval"})
    examples = task.read(path)
    assert [e for tags in examples.labels for e in entities(tags)]
    assert find_scheme(examples.labels) == task.learn(examples).state.scheme


@pytest.mark.parametrize(("text", "message"), [
    ("Anna B-PER\nmet o\nPaul B-PER\n", "line 2: of 'met' the tag 'o' is not an entity tag (O, B-..., I-...)"),
    ("Anna b-per\nmet o\n", "line 1: of 'Anna' the tag 'b-per'"),  # all in lower case
    ("Anna B_PER\nmet O\n", "line 1: of 'Anna' the tag 'B_PER'"),
    ("Anna B\nmet 0\nin O\n", "line 2: of 'met' the tag '0'"),
])  # fmt: skip
def test_a_tag_that_is_no_entity_tag_among_others_is_named(write, text, message):
    path = write("a.conll", text)
    for columns in ({}, {"tag_scheme": "conlleval"}):
        with pytest.raises(DataError) as error:
            task_of(columns=columns).read(path)
        assert message in str(error.value) and "list all of them in task.labels" in str(error.value)
    tags = [line.split()[1] for line in text.splitlines() if line]
    task = task_of(labels=sorted(set(tags)))
    assert [tag for tags in task.read(path).labels for tag in tags] == tags and task.metric == "accuracy"


@pytest.mark.parametrize("tags", ["NN VB IN", "N O S V I", "O E S", "O VERB"])
def test_other_tags_are_no_entities(write, tags):
    task, _ = tiny.learned(write("a.conll", "".join(f"a {tag}\n" for tag in tags.split())), task_of())
    assert task.labels == tuple(sorted(tags.split())) and task.metric == "accuracy"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_entities_without_types_are_scored_as_those_of_one_type(write, scheme):
    rng = random.Random(2)
    typed = [rewrite([rng.choice(["O", "B-X", "I-X"]) for _ in range(9)], scheme) for _ in range(40)]
    gold, said = typed[:20], typed[20:]
    plain = [[[tag.removesuffix("-X") for tag in tags] for tags in side] for side in (gold, said)]
    assert find_scheme(plain[0]) == scheme and 0.1 < entity_scores(gold, said)["f1"] < 0.9
    assert entity_scores(*plain) == entity_scores(gold, said)
    for other in SCHEMES:
        expected = [[tag.removesuffix("-X") for tag in rewrite(tags, other)] for tags in gold]
        assert [rewrite(tags, other) for tags in plain[0]] == expected
    path = write("a.conll", "\n".join("".join(f"a {tag}\n" for tag in tags) for tags in plain[0]))
    task, _ = tiny.learned(path, task_of())
    assert (task.state.scheme, task.metric) == (scheme, "f1")
    assert set(task.labels) == {"O", "B", "I"} | set({"BIOES": "ES", "BILOU": "LU"}.get(scheme, ""))
    words = Words([[1]] * 9, [2 * i for i in range(9)], [2 * i + 1 for i in range(9)])
    answer = task._answer("a " * 8 + "a", words, np.zeros((9, len(task.labels))), plain[0][0], None)
    assert len(answer["entities"]) == len(entities(gold[0])) and {e["type"] for e in answer["entities"]} == {"_"}


def test_a_scheme_is_for_entities(write):
    with pytest.raises(ConfigError, match="task.scheme=BIOES needs tags that mark entities .* remove task.scheme"):
        task_of(scheme="BIOES").read(write("a.conll", "a NN\nb VB\n"))
