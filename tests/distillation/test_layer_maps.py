import pytest

from bert_tf.distillation import spread_layers, uniform_layers
from bert_tf.errors import ConfigError


def test_the_published_maps():
    assert spread_layers(6, 12) == (0, 2, 4, 7, 9, 11)  # extract_distilbert.py
    assert uniform_layers(4, 12) == (2, 5, 8, 11)  # TinyBERT: layers 3, 6, 9, 12, counted from 1
    assert spread_layers(4, 4) == uniform_layers(4, 4) == (0, 1, 2, 3)
    assert spread_layers(1, 12) == (0,)


def test_more_layers_than_the_teacher():
    with pytest.raises(ConfigError, match="the student has 5 layers and the teacher 4"):
        spread_layers(5, 4)
