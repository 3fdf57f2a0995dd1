"""Entity tags: entities and scores, by hand."""

import random

import pytest
from seqeval.metrics import classification_report

from bert_tf.tasks.tagging.entities import complete, entity_scores, scores_by_type


def test_scores_by_type_are_those_of_seqeval():
    rng = random.Random(0)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-ORG", "B-ORG"]
    gold, said = ([[rng.choice(tags) for _ in range(9)] for _ in range(80)] for _ in range(2))
    expected = classification_report(gold, said, output_dict=True, zero_division=0)
    for kind, values in scores_by_type(gold, said).items():
        assert 0 < values["f1"] < 1
        for name, value in values.items():
            assert value == pytest.approx(expected[kind]["f1-score" if name == "f1" else name])
    assert list(scores_by_type(gold, said)) == ["LOC", "ORG", "PER"]
    nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    found = scores_by_type([["O", "S-PER"]], [["U-LOC", "O"]])
    assert entity_scores([["B-PER", "I-PER"]], [["B-PER", "O"]]) == nothing, "half an entity is none"
    assert found == {"LOC": nothing | {"support": 0}, "PER": nothing | {"support": 1}}


def test_complete_adds_the_missing_prefixes():
    assert complete({"O", "I-PER", "I-LOC"}) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert complete({"O", "S-PER", "B-LOC", "E-LOC"}) == (
        "O", "B-LOC", "E-LOC", "I-LOC", "S-LOC", "B-PER", "E-PER", "I-PER", "S-PER",
    )  # fmt: skip
