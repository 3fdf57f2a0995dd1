"""Runs of training by the commands, on the backend that KERAS_BACKEND names, with two devices: for test_jax_runs.py.

    KERAS_BACKEND=jax python tests/backend/jax_runs.py FOLDER

Runs that were begun elsewhere are continued, one is new. Prints as JSON what must not be imported, and answers of a served run.
"""

import json
import sys
from pathlib import Path

import bert_tf
from bert_tf import config
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.shards_recipe import ShardsRecipe

QUESTIONS = ["the film good", "a dull plot", "the song"]


def command(name, folder, run, *settings, file=None):
    given = [word for setting in settings for word in ("--set", setting)]
    assert main([name, "--config", f"{folder / (file or name)}.yaml", "--output", f"{folder / run}", *given]) == 0


def augment(folder, name):
    """Other versions of texts, by the model that TensorFlow has pretrained."""
    texts = folder / "words.tsv"
    texts.write_text("text\tlabel\nthe people of the union and the state\t1\nto the house and to the congress\t0\n")
    words = ["--train", str(texts), "--output", f"{folder / name}", "--set", "stop_words=none", "--set", "rate=0.9"]
    assert main(["distill", "--augment", f"{folder / 'pretraining'}", *words]) == 0


def copy_checkpoint(folder):
    """Restores the last checkpoint of a run of TensorFlow, and saves what was restored."""
    settings = config.load(PretrainConfig, folder / "pretrain.yaml")
    model = ShardsRecipe(settings).make_model()
    model.compile(make_optimizer(settings.optimizer, settings.train.steps))
    state = Checkpoints(folder / "pretraining" / "checkpoints").restore(model)
    (folder / "copied").mkdir()
    Checkpoints(folder / "copied" / "checkpoints").save(model, state["step"])


def results(folder):
    """Trains in a folder; what is printed."""
    for run in ("jax", "killed", "begun_pretraining"):
        command("pretrain", folder, run)
    command("pretrain", folder, "without_dropout", file="without_dropout")
    command("finetune", folder, "begun_tuning")
    command("distill", folder, "begun_distillation")
    for name, run in (("pretrain", "begun_pretraining_on_two"), ("finetune", "begun_tuning_on_two")):
        command(name, folder, run, "train.strategy=mirrored")
    copy_checkpoint(folder)
    augment(folder, "augmented_on_jax.jsonl")
    model = bert_tf.load(folder / "begun_tuning")
    model.model.weights[-1].assign([0.7, -0.7])  # the bias of the head: what is in memory is served
    served = model.export(folder / "served")
    imported = [name for name in sys.modules if name.startswith("bert_tf.backend.tensorflow")]
    found = {"imported": imported, "served": str(served), "answers": model.predict(QUESTIONS)}
    try:
        return found | {"refused": str(model.export(folder / "served", kind="generation"))}
    except ConfigError as error:
        return found | {"refused": str(error)}


if __name__ == "__main__":
    print(json.dumps(results(Path(sys.argv[1]))))
