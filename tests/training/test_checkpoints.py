import errno
import json

import keras
import numpy as np
import pytest
from keras import ops

from bert_tf.backend import AdamW, TrainableModel
from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.training import checkpoints
from bert_tf.training.checkpoints import Checkpoints, assign


class Line(TrainableModel):
    """y = kernel * x; the smallest model with an optimizer state."""

    def __init__(self, width=3):
        super().__init__()
        self.dense = keras.layers.Dense(width, name="dense")
        self.dense.build((None, 2))
        self.built = True

    def call(self, features, training=False):
        return self.dense(features["x"])

    def loss_weights(self, features):
        return {"square": ops.cast(ops.shape(features["x"])[0], "float32")}

    def loss_sums(self, features, training):
        return {"square": ops.sum(ops.square(self(features) - 1.0))}, {}


def trained(steps, width=3):
    keras.utils.set_random_seed(0)
    model = Line(width)
    model.compile(AdamW(0.1))
    model.fit({"x": np.ones((8 * steps, 2), "float32")}, batch_size=8, verbose=0)
    return model


def state_of(model):
    return [v.numpy() for v in model.variables + model.optimizer.variables]


def test_everything_comes_back_bitwise(tmp_path):
    model = trained(3)
    Checkpoints(tmp_path).save(model, 3, epoch=7)
    other = trained(1)
    state = Checkpoints(tmp_path).restore(other)
    assert (state["step"], state["epoch"]) == (3, 7)
    assert all(np.array_equal(a, b) for a, b in zip(state_of(model), state_of(other), strict=True))


def test_only_the_newest_are_kept_and_never_fewer_than_two(tmp_path):
    saved = Checkpoints(tmp_path, keep=1)
    for step in (1, 2, 3):
        saved.save(trained(1), step)
    assert [f.name for f in saved.all()] == ["step-00000002", "step-00000003"]


@pytest.mark.parametrize("file", [checkpoints.MODEL, checkpoints.OPTIMIZER, checkpoints.STATE])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, file, damage):
    saved = Checkpoints(tmp_path)
    for step in (1, 2):
        saved.save(trained(step), step)
    path = saved.all()[-1] / file
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[0] ^= 1
        path.write_bytes(content)
    assert saved.restore(trained(1))["step"] == 1


def test_no_checkpoint_is_none(tmp_path):
    assert Checkpoints(tmp_path / "absent").restore(trained(1)) is None


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path, monkeypatch):
    saved, model = Checkpoints(tmp_path), trained(1)
    saved.save(model, 1)

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(RunDirectoryError, match="step-00000002: the disk is full"):
        saved.save(model, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    assert saved.restore(model)["step"] == 1


def test_assign_is_strict(tmp_path):
    model = trained(1)
    Checkpoints(tmp_path).save(model, 1)
    file = tmp_path / "step-00000001" / checkpoints.MODEL
    with pytest.raises(DataError, match=r"'dense/kernel' in .* has shape \(2, 3\), the model's is \(2, 4\)"):
        assign(trained(1, width=4).variables, file)
    with pytest.raises(DataError, match="has no tensor 'other'"):
        assign([keras.Variable(0.0, name="other")], file)
    with pytest.raises(DataError, match="1 tensors that the model has not, e.g. 'dense/bias'"):
        assign([v for v in model.variables if v.name == "kernel"], file)
    assert assign([v for v in model.variables if v.name == "kernel"], file, others_allowed=True) == ["dense/bias"]
    (tmp_path / "broken.safetensors").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot read .*broken"):
        assign(model.variables, tmp_path / "broken.safetensors")


def test_state_names_the_checksums(tmp_path):
    Checkpoints(tmp_path).save(trained(1), 1)
    folder = tmp_path / "step-00000001"
    sums = json.loads((folder / checkpoints.STATE).read_text())["sha256"]
    assert sums == {name: checkpoints.sha256(folder / name) for name in (checkpoints.MODEL, checkpoints.OPTIMIZER)}
