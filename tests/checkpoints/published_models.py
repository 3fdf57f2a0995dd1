"""Folders of fine-tuned models as transformers saves them, put together from tests/fixtures (tests/golden/finetuned.py)."""

import json
import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import publish

FIXTURES = Path(__file__).parents[1] / "fixtures"
SINGLE, PAIR = "the war", ("the war", "a tax")


def golden(family):
    with np.load(FIXTURES / "finetuned" / f"{family}.npz") as file:
        return dict(file)


def published(family, name, folder, **changes):
    """Writes the folder of the class `name` ("BertForSequenceClassification"); `changes` as of `copy_of`."""
    arrays, base = golden(family), FIXTURES / "checkpoints" / family
    copy_of(family, folder, json.loads(str(arrays[f"{name}/config"])), **changes)
    tensors = load_file(base / "model.safetensors")
    tensors |= {key.split("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/head/")}
    save_file({key: tensors[key] for key in arrays[f"{name}/names"].tolist()}, folder / "model.safetensors")
    return folder


def assert_same_tensors(ours, theirs):
    """Two folders hold the same arrays under the same names."""
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (ours, theirs))
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)


def assert_same_weights(model, other):
    """Two models, or a model and a dict by path, have the same weights, whatever else `other` has."""
    known = other if isinstance(other, dict) else {v.path: v for v in other.weights}
    for variable in model.weights:
        np.testing.assert_array_equal(variable, known[variable.path], err_msg=variable.path)


def write_tensorflow1(prefix, tensors):
    """A checkpoint of these arrays by name."""
    names = list(tensors)
    values = [tf.convert_to_tensor(tensors[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)


def copy_of(name, folder, config=None, **changes):
    """A copy of a fixture, or with another config.json, with these changes of it; `...` leaves a key out."""
    shutil.copytree(FIXTURES / "checkpoints" / name, folder)
    config = (config or json.loads((folder / "config.json").read_text())) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))
    return folder


def change_arrays(folder, change):
    """Writes `change(arrays)` in place of the arrays of a folder, name by name."""
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")


def write_task(model, task, folder):
    """A model of a task as Hugging Face's class of it; returns its config.json."""
    described, weights = publish(task, model, folder.parent)
    write_finetuned(model.backbone, weights, described, task.tokenizer, folder)
    return json.loads((folder / "config.json").read_text())
