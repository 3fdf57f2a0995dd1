"""Question answering: the public check, training, decisions about impossible questions, windows in predictions."""

import dataclasses
import json

import numpy as np
import pytest
import tiny_questions as tiny

from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import TASKS, load_task
from bert_tf.tasks.record import check_task as check_settings
from bert_tf.testing import check_task


@pytest.mark.parametrize("head", ["bert", "electra", "xlnet"])
def test_it_passes_the_check(head, tmp_path):
    path = tiny.write_squad(tmp_path / "a.json")
    settings = {"max_query_length": 6, "stride": 4, "head": head, "n_best": 3, "beam": None if head == "bert" else 3}
    check_task(TASKS["question_answering"], path, tiny.encoder(), tiny.tokenizer(), tmp_path, **settings)
