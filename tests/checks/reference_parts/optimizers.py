"""Two updates of a train step as `fit` compiles it: losses and the weights after them, for each optimizer and way to train."""

import itertools
import random
import typing

import keras
import numpy as np
import tensorflow as tf

from bert_tf.tasks import build_task
from bert_tf.training.finetune_config import FinetuneTrainConfig
from bert_tf.training.freezing import Freezing
from bert_tf.training.layer_decay import set_layer_decay
from bert_tf.training.optimization import make_optimizer, make_schedule
from bert_tf.training.optimizer_config import OPTIMIZERS, OptimizerConfig
from reference_parts import library, objectives
from reference_parts.model_cases import inputs, load

STEPS = 2
#: Case -> (settings of the optimizer, how the classifier on BERT is trained).
CASES = {
    "adamw": ({"name": "adamw", "learning_rate": 1e-2, "clip_norm": 0.5}, {}),
    "adamw_bias_correction": ({"name": "adamw", "learning_rate": 1e-2, "bias_correction": True, "clip_norm": None}, {}),
    "lamb": ({"name": "lamb", "learning_rate": 1e-2}, {}),
    "adafactor": ({"name": "adafactor", "warmup_steps": 10}, {}),
    "adafactor_absolute": (
        {"name": "adafactor", "learning_rate": 1e-3, "warmup_steps": 1, "scale_by_parameters": False, "clip_threshold": None}, {}
    ),
    "adagrad": ({"name": "adagrad", "learning_rate": 0.1, "initial_accumulator_value": 0.01}, {}),
    "layer_decay": ({"name": "adamw", "learning_rate": 1e-2}, {"layer_decay": "electra"}),
    "layer_decay_xlnet": ({"name": "adamw", "learning_rate": 1e-2}, {"layer_decay": "xlnet"}),
    "accumulation": ({"name": "adamw", "learning_rate": 1e-2}, {"accumulation_steps": 2}),
    "remat": ({"name": "adamw", "learning_rate": 1e-2}, {"remat": True}),
    "xla": ({"name": "adamw", "learning_rate": 1e-2}, {"xla": True}),
    "plain_kernels": ({"name": "adamw", "learning_rate": 1e-2}, {"cpu_kernels": False}),
    "frozen": ({"name": "adamw", "learning_rate": 1e-2}, {"trainable": {"freeze": 1}}),
    "lora": ({"name": "adamw", "learning_rate": 1e-2}, {"trainable": {"name": "lora", "rank": 2}}),
}  # fmt: skip
#: Objectives whose train step is compiled, too: its kernels are others than those of `objectives`.
TRAINED = (
    "masked_lm_nsp", "masked_lm_modernbert", "replaced_tokens", "permutation", "causal_gpt2",
    "causal_lstm", "autoencoder", "bidirectional_elmo", "denoising", "text_to_text_transformer",
)  # fmt: skip


def missing():
    known = {given["name"] for given, _ in CASES.values()}
    yield from (f"optimizer {name}" for name in OPTIMIZERS if name not in known)


def cases(room):
    yield "schedules", schedules
    for name in CASES:
        yield name, lambda name=name: values(room, name)
    for name in TRAINED:
        yield f"train_step/{name}", lambda name=name: trained(room, name)


def optimizer_of(given, steps):
    config = library.settings(OptimizerConfig, {"warmup_steps": 0} | given)
    return make_optimizer(config, steps)


def schedules():
    """The learning rates of twelve updates, for every form of the warm-up and the decay."""
    hints, found = typing.get_type_hints(OptimizerConfig), {}
    for schedule, decay in itertools.product(typing.get_args(hints["schedule"]), typing.get_args(hints["decay"])):
        given = {
            "schedule": schedule,
            "decay": decay,
            "warmup_steps": 4,
            "learning_rate": 0.1,
            "end_learning_rate": 0.01,
        }
        for power, first in ((1.0, 0), (2.0, 1)):
            config = library.settings(OptimizerConfig, given | {"power": power, "first_step": first})
            rates = make_schedule(config, 12)
            found[f"{schedule}_{decay}_{first}"] = np.array([float(rates(step)) for step in range(12)], "float32")
    return found


def classifier(room):
    """A classifier on BERT, a batch of it, and the opened folder of the BERT."""
    encoder, tokenizer, _, source = load(room, "bert", pooler=True)
    task = build_task(
        {"kind": "classification", "labels": ["a", "b", "c"], "head": {"dropout": 0.0}, "sequence_length": 32},
        tokenizer,
    )
    model = task.model(encoder)
    own = library.by_path(encoder)
    room.assign("optimizers_head", {path: v for path, v in library.by_path(model).items() if path not in own})
    rows = inputs(room, "bert", encoder)["padded"]
    features = {
        key: np.concatenate([rows[key][:2], rows[key][:2]]) for key in ("token_ids", "segment_ids", "padding_mask")
    }
    labels = {"labels": np.array([0, 2, 1, 1], "int32"), "label_weights": np.array([1, 1, 0.5, 1], "float32")}
    return model, {key: tf.constant(array) for key, array in (features | labels).items()}, source


def fit(model, features=None, data=None, **how):
    """The mean loss after each of the updates on a batch, or on the batches of a dataset."""
    # Another seed each time: dropout, of which there must be none, would be found by `compare`.
    model.compile(how.pop("optimizer"), seed=random.randrange(1 << 31), **how)
    seen = Seen()
    model.fit(data or tf.data.Dataset.from_tensors(features).repeat(STEPS), verbose=0, callbacks=[seen])
    return seen.losses


class Seen(keras.callbacks.Callback):
    """The mean loss so far after each update."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


def values(room, name):
    given, how = CASES[name]
    model, features, source = classifier(room)
    how, optimizer = dict(how), optimizer_of(given, 10)
    if "layer_decay" in how:
        set_layer_decay(optimizer, model, 0.7, how.pop("layer_decay"))
    if "trainable" in how:
        settings = {"trainable": how.pop("trainable"), "epochs": 1}
        freezing = Freezing(model, library.settings(FinetuneTrainConfig, settings), source)
        factors = {path: v for path, v in library.by_path(model).items() if "/lora_kernel_" in path}
        if factors:
            room.assign("optimizers_lora", factors)
        freezing.build(optimizer)
    losses = fit(model, features, optimizer=optimizer, **how)
    arrays = {path: np.asarray(variable) for path, variable in library.by_path(model).items()}
    return {"losses": losses, "weights": library.published(source, arrays)}


def trained(room, name):
    model, features, source = objectives.made(room, name)
    losses = fit(model, features, optimizer=optimizer_of(CASES["adamw"][0], 10))
    arrays = {path: np.asarray(variable) for path, variable in library.by_path(model).items()}
    return {"losses": losses, "weights": library.published(source, arrays)}
