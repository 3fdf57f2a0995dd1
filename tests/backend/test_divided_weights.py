"""The one layout map: which weights of the stacks are divided over devices."""

import re

import pytest
from twelve_steps import objectives

from bert_tf.backend import LAYOUTS

#: The kernels of attention and feed-forward layers in the stacks of all families.
STACKS = r"(attention/.*kernel|layer_\d+/(intermediate|output)/kernel)$"


@pytest.fixture(scope="module")
def models():
    return objectives()


@pytest.mark.parametrize("name", "bert albert modernbert electra xlnet t5 transformer transformer_bilm".split())
def test_every_large_weight_of_a_stack_is_divided_once(name, models):
    weights = models[name].weights
    assert any(re.search(STACKS, v.path) for v in weights)
    for variable in weights:
        found = [axes for pattern, axes in LAYOUTS.items() if re.fullmatch(pattern, variable.path)]  # as Keras does
        assert len(found) == 1 if re.search(STACKS, variable.path) else len(found) <= 1, variable.path
        for axes in found:
            assert len(axes) == len(variable.shape) and sum(axes) == 1, variable.path
            assert variable.shape[axes.index(True)] % 2 == 0, variable.path
