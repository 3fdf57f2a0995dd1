"""What the commands that open the small published models of the fixtures share."""

import functools

import pytest

import bert_tf


@pytest.fixture(scope="module")
def loaded_once():
    """Each checkpoint is loaded once: most of a command's time is the graph of its tokenizer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert_tf, "load", functools.cache(bert_tf.load))
        yield
