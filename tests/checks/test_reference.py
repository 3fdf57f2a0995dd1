"""Reference values: every registered name has a case, and a difference is named by its first place."""

import importlib

import numpy as np
import pytest
from reference import PARTS
from reference_parts import values


@pytest.mark.parametrize("part", PARTS)
def test_every_registered_name_has_a_case(part):
    assert list(importlib.import_module(f"reference_parts.{part}").missing()) == []


def test_what_is_kept_is_what_was_computed(tmp_path):
    nested = {
        "ids": [[1, 2], []],
        "logits": np.ones((2, 3), "float32"),
        "answers": [{"text": "é", "p": 0.5}],
        "none": None,
    }
    computed = values.flatten(nested)
    values.save(tmp_path, "bert/case", computed)
    kept = values.load(tmp_path, "bert/case")
    assert list(kept) == ["ids", "logits", "answers/0/text", "answers/0/p", "none"]
    assert values.cases_in(tmp_path) == ["bert/case"] and not list(values.differences(kept, computed, exact=True))


def test_a_difference_says_where_it_is():
    old = {"logits": np.zeros((2, 3), "float32"), "texts": ["a", "b"], "gone": 1}
    new = {"logits": np.array([[0, 0, 0], [0, 1e-3, 1e-6]], "float32"), "texts": ["a", "c"], "new": 1}
    assert list(values.differences(old, new, exact=True)) == [
        "logits[1, 1]: 0.0 is now 0.0010000000474974513; largest difference 0.001; 2 of 6 differ",
        "texts[1]: 'b' is now 'c'",
        "gone: is no longer computed",
        "new: is new",
    ]
    near = {"logits": np.full((2, 3), 9e-6, "float32")}
    assert not list(values.differences({"logits": old["logits"]}, near, exact=False))
    assert list(values.differences({"logits": old["logits"]}, near, exact=True))
