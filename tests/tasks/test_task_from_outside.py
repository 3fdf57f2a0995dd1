"""A task that is defined here and nowhere else: it passes the public check, and its settings are checked."""

import dataclasses

import numpy as np
import pytest
import tiny
from keras import ops

from bert_tf.errors import ConfigError, DataError
from bert_tf.export import ServingModule
from bert_tf.tasks import TASKS, TaskConfig, TaskModel, TaskRecord, TextTask, build_task, load_task, register_task
from bert_tf.testing import check_task

# -- the task: several labels for each text, separated by commas in the file -----------------------


@dataclasses.dataclass(frozen=True)
class LabelSetsConfig(TaskConfig):
    threshold: float = 0.5


class LabelSetsModel(TaskModel):
    def call(self, features, training=False):
        return {"probabilities": ops.sigmoid(self.outputs(features, training=training))}

    def loss_weights(self, features):
        return {"label": ops.sum(features["label_weights"])}

    def loss_sums(self, features, training):
        logits, labels = self.outputs(features, training=training), features["labels"]
        losses = ops.sum(ops.softplus(logits) - labels * logits, axis=-1)
        return {"label": ops.sum(losses * features["label_weights"])}, {}


class LabelSetsTask(TextTask):
    def learn(self, examples):
        self.labels = self.labels or tuple(sorted({name for labels in examples.labels for name in labels.split(",")}))

    def label_array(self, examples):
        sets = [labels.split(",") for labels in examples.labels]
        return np.array([[name in names for name in self.labels] for names in sets], np.float32)

    def make_model(self, encoder):
        return LabelSetsModel(encoder, len(self.labels), self.config.dropout, name="label_sets")

    def scores(self, examples, outputs):
        found = np.array([output["probabilities"] for output in outputs]) > self.config.threshold
        exact = np.mean(np.all(found == self.label_array(examples), axis=1))
        return {"loss": float(1 - exact), "exact": float(exact), "examples": len(examples)}

    def answers(self, examples, outputs):
        chosen = [output["probabilities"] > self.config.threshold for output in outputs]
        return [{"labels": [n for n, yes in zip(self.labels, row) if yes]} for row in chosen]


class ServedLabelSets(ServingModule):
    def answer(self, features):
        return {"probabilities": self.bucketed_output(features, "probabilities", [2])}


RECORD = TaskRecord(
    "label_sets", LabelSetsTask, ServedLabelSets, metrics=("exact",), min_labels=1, config=LabelSetsConfig
)


@pytest.fixture(scope="module")
def record():
    before = set(TASKS)
    yield register_task(RECORD)
    assert before | {"label_sets"} == set(TASKS)


def test_it_passes_the_check(record, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ngood paris\tgood,paris\nthe film\tgood\nparis\tparis\n")
    check_task(record, path, tiny.encoder(), tiny.tokenizer(), tmp_path, threshold=0.4)
    task = load_task(tmp_path, tiny.tokenizer())
    assert (task.labels, task.config.threshold) == (("good", "paris"), 0.4)
    (tmp_path / "task.json").write_text('{"config": {"kind": "label_set"}}')
    with pytest.raises(DataError, match="'task.kind' is 'label_set'; did you mean 'label_sets'"):
        load_task(tmp_path)


def test_its_settings_are_its_own(record):
    assert build_task({"kind": "label_sets", "threshold": 0.1}, tiny.tokenizer()).config.threshold == 0.1
    for config, message in (
        ({"threshold": 0.1}, "unknown key 'task.threshold'"),
        ({"kind": "label_sets", "threshold": "x"}, "'task.threshold' must be float"),
        ({"kind": "label_sets", "metric": "f1"}, "task.metric=f1 is no metric of label_sets"),
        ({"kind": "label_sets", "labels": []}, "task.labels must hold at least 1"),
    ):
        with pytest.raises(ConfigError) as error:
            build_task(config, tiny.tokenizer())
        assert message in str(error.value)
    with pytest.raises(ConfigError, match="there is another task of the name 'label_sets'"):
        register_task(dataclasses.replace(RECORD, min_labels=2))
