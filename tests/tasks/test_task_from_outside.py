"""The settings of a task from outside; tests/test_extending.py walks another one from its file to a served model."""

import dataclasses
import re

import pytest
import tiny

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import TASKS, ClassificationConfig, TaskRecord, build_task, load_task, register_task
from bert_tf.tasks.texts.classification import ClassificationTask


@dataclasses.dataclass(frozen=True)
class LabelSetsConfig(ClassificationConfig):
    threshold: float = 0.5

    min_labels = 1


class LabelSetsTask(ClassificationTask):
    pass


RECORD = TaskRecord("label_sets", LabelSetsTask, metrics=("exact",), config=LabelSetsConfig)


@pytest.fixture(scope="module", autouse=True)
def record():
    yield register_task(RECORD)
    TASKS.remove("label_sets")


def test_its_settings_are_its_own(tmp_path):
    assert build_task({"kind": "label_sets", "threshold": 0.1}, tiny.tokenizer()).config.threshold == 0.1
    for config, message in (
        ({"kind": "label_sets", "threshold": "x"}, "'task.threshold' must be float"),
        ({"kind": "label_sets", "labels": []}, "task.labels must hold at least 1"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            build_task(config, tiny.tokenizer())
    with pytest.raises(ConfigError, match="there is another task of the name 'label_sets'"):
        register_task(dataclasses.replace(RECORD, aliases=("sets",)))
    saved = '{"config": {"kind": "label_set"}, "columns": {}, "state": {}, "tokenizer_fingerprint": ""}'
    (tmp_path / "task.json").write_text(saved)
    with pytest.raises(DataError, match="'task.kind' is 'label_set'; did you mean 'label_sets'"):
        load_task(tmp_path)
