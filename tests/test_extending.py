"""A family, an objective and a task from outside of the library, walked from text to a served model.

Only public names: what stands here is what `bert_tf/models/README.md` tells a user to write.
"""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from opened import task_and_model
from training.sample_corpus import addresses

import bert_tf
from bert_tf import config
from bert_tf.export import ServingModule, export_run, register_served
from bert_tf.export.served import SERVED
from bert_tf.layers import ClassificationHead, Embeddings
from bert_tf.models import FAMILIES, Encoder, Family, ModelConfig, encoder_inputs, register_family
from bert_tf.objectives import OBJECTIVES, Objective, ObjectiveConfig, PretrainingModel, register_objective
from bert_tf.tasks import TASKS, TaskModel, TaskRecord, TextTask, register_task
from bert_tf.tokenizers import train_wordpiece
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain
from tfrecords import ShardsConfig, write_shards

# -- a family: a bidirectional GRU ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class BiGruConfig(ModelConfig):
    dropout: float = 0.0
    initializer_range: float = 0.1


@keras.saving.register_keras_serializable("extending")
class BiGruEncoder(Encoder):
    config_class = BiGruConfig

    def __init__(self, config, pooler=False, dtype=None, name="bigru", **kwargs):
        dtype = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embeddings = Embeddings(
            vocabulary_size=config.vocabulary_size, size=config.hidden_size, max_positions=None, num_segments=0,
            dropout=config.dropout, layer_norm_epsilon=1e-6, initializer_range=config.initializer_range, dtype=dtype,
            name="embeddings",
        )  # fmt: skip
        gru = keras.layers.GRU(config.hidden_size // 2, return_sequences=True, dtype=dtype, name="gru")
        both = keras.layers.Bidirectional(gru, dtype=dtype, name="both")
        inputs = encoder_inputs()
        x = both(embeddings(inputs["token_ids"]), mask=inputs["padding_mask"])
        super().__init__(config, inputs, {"sequence_output": x}, dtype=dtype, name=name, pooler=pooler, **kwargs)


# -- an objective: which quarter of the possible lengths a row has ------------------------------------


@dataclasses.dataclass(frozen=True)
class LengthBucketConfig(ObjectiveConfig):
    name: str = "length_bucket"
    buckets: int = 4


@keras.saving.register_keras_serializable("extending")
class LengthBucket(PretrainingModel):
    settings_class, kept_settings = LengthBucketConfig, ("buckets",)

    def __init__(self, backbone, buckets=4, **kwargs):
        super().__init__(backbone, **kwargs)
        self.buckets = buckets
        self.length_head = ClassificationHead(buckets, 0.0, 0.02, dtype=self.dtype_policy, name="length_head")
        self.length_head.build((None, backbone.config.hidden_size))

    def call(self, features, training=False):
        inputs = {name: features[name] for name in ("token_ids", "padding_mask")}
        x = self.backbone(inputs, training=training)["sequence_output"]
        real = ops.cast(features["padding_mask"], x.dtype)[..., None]
        return {"length_logits": self.length_head(ops.sum(x * real, 1) / ops.sum(real, 1))}

    def loss_weights(self, features):
        return {"length": ops.cast(ops.shape(features["token_ids"])[0], "float32")}

    def loss_sums(self, features, training):
        logits, mask = self(features, training=training)["length_logits"], features["padding_mask"]
        labels = (ops.sum(ops.cast(mask, "int32"), 1) - 1) * self.buckets // ops.shape(mask)[1]
        right = ops.cast(ops.cast(ops.argmax(logits, -1), "int32") == labels, "float32")
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return {"length": ops.sum(losses)}, {"length_accuracy": (ops.sum(right), self.loss_weights(features)["length"])}


# -- a task: how many of some words a text holds ------------------------------------------------------


@keras.saving.register_keras_serializable("extending")
class CountModel(TaskModel):
    def call(self, features, training=False):
        return {"count": ops.exp(self.outputs(features, training=training)[:, 0])}

    def loss_weights(self, features):
        return {"count": ops.sum(features["label_weights"])}

    def loss_sums(self, features, training):
        log, labels = self.outputs(features, training=training)[:, 0], features["labels"]
        return {"count": ops.sum((ops.exp(log) - labels * log) * features["label_weights"])}, {}  # Poisson


class CountTask(TextTask):
    def label_array(self, examples):
        return np.array([float(label) for label in examples.labels], np.float32)

    def make_model(self, encoder):
        return CountModel(encoder, 1, self.config.head.dropout, name="count")

    def measure(self, examples, decided):
        errors = np.abs(decided["count"] - self.label_array(examples))
        return {"loss": float(np.mean(errors)), "near": float(np.mean(errors < 0.5)), "examples": len(examples)}

    def answers(self, examples, decided):
        return [{"count": float(count)} for count in decided["count"]]


class ServedCount(ServingModule):
    def answer(self, features):
        return self.bucketed_outputs(features, count=[])


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_family(Family("bigru", BiGruConfig, BiGruEncoder, objective="length_bucket"))
    register_objective(Objective(LengthBucketConfig, LengthBucket, head="length_head"))
    register_task(TaskRecord("count", CountTask, metrics=("near",)))
    register_served("count", ServedCount)
    yield
    FAMILIES.remove("bigru"), OBJECTIVES.remove("length_bucket"), TASKS.remove("count"), SERVED.pop("count")


def test_the_whole_road(tmp_path):
    texts = addresses(4, 6000)
    (tmp_path / "corpus.txt").write_text("\n\n".join(texts))
    tokenizer = train_wordpiece(texts, 300, lowercase=True)
    shards = ShardsConfig(sequence_length=32, format="sentence_pair")
    write_shards(tmp_path / "corpus.txt", tmp_path / "shards", tokenizer, shards)
    run, metrics = pretrain(config.build(PretrainConfig, {
        "model": {"family": "bigru", "hidden_size": 16}, "data": {"shards": str(tmp_path / "shards")},
        "objective": {"name": "length_bucket", "buckets": 4}, "optimizer": {"learning_rate": 0.02},
        "train": {"steps": 20, "batch_size": 16, "log_every": 10, "checkpoint_every": 10, "strategy": "one", "xla": False},
    }), tmp_path / "run")  # fmt: skip
    assert metrics["length_loss"] < run.metrics()[0]["length_loss"] < np.log(4)
    again = bert_tf.load(run.path).objective
    assert (type(again), again.buckets, again.backbone.config.hidden_size) == (LengthBucket, 4, 16)

    rows = ["the union\t1", "the senate\t0", "union and union\t2", "of the people\t0"] * 12
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    summary = finetune(config.build(FinetuneConfig, {
        "task": {"kind": "count", "sequence_length": 16}, "init_from": str(run.path),
        "data": {"train": str(tmp_path / "a.tsv"), "dev": str(tmp_path / "a.tsv")},
        "optimizer": {"learning_rate": 0.02}, "train": {"epochs": 10, "batch_size": 8, "strategy": "one", "xla": False},
    }), tmp_path / "task")  # fmt: skip
    assert summary["dev"]["mean"]["near"] == 1.0
    task, model = task_and_model(tmp_path / "task")
    answers = [answer["count"] for answer in task.predict(model, ["union and union", "of the people"])]
    served = tf.saved_model.load(str(export_run(tmp_path / "task", precision="float32"))).signatures["serving_default"]
    found = served(text=tf.constant(["union and union", "of the people"]))["count"]
    np.testing.assert_allclose(found, answers, rtol=1e-4)
