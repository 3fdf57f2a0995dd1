import errno
import json
import os
import random
import shutil

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from bert_tf.backend import AdamW, TrainableModel
from bert_tf.errors import DataError, NonFiniteError, RunDirectoryError
from bert_tf.training import checkpoints
from bert_tf.training.checkpoints import Checkpoints, assign


class Line(TrainableModel):
    """y = kernel * x; the smallest model with an optimizer state."""

    def __init__(self, width=3, inputs=2):
        super().__init__()
        self.dense = keras.layers.Dense(width, name="dense")
        self.dense.build((None, inputs))
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


def test_the_newest_are_kept_never_fewer_than_two_and_whatever_was_interrupted(tmp_path):
    saved = Checkpoints(tmp_path / "two", keep=1)
    for step in (1, 2, 3):
        saved.save(trained(1), step)
    assert [f.name for f in saved.all()] == ["step-00000002", "step-00000003"]
    saved = Checkpoints(tmp_path / "others", keep=2)
    for step in (4, 8):
        saved.save(trained(1), step)
        saved.save(trained(1), step + 1, interrupted=True)
        saved.save(trained(1), step + 2, interrupted=True)
    names = ["step-00000004", "step-00000008", "step-00000010-interrupted"]
    assert [f.name for f in saved.all()] == names
    assert saved.latest()[1]["step"] == 10
    assert [state["step"] for _, state in saved.newest(5)] == [4, 8]
    saved.save(trained(1), 12)
    assert [f.name for f in saved.all()] == ["step-00000008", "step-00000012"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    saved = Checkpoints(tmp_path_factory.mktemp("two"))
    for step in (1, 2):
        saved.save(trained(step), step, epoch=7)
    return saved.folder


@pytest.fixture
def saved(two, tmp_path):
    """Checkpoints of steps 1 and 2, in a folder of the test's own."""
    return Checkpoints(shutil.copytree(two, tmp_path / "checkpoints"))


def contents(saved):
    return {path: path.read_bytes() for path in saved.all()[-1].iterdir()}


def test_a_checkpoint_cut_anywhere_is_passed_over(saved, caplog):
    for path, content in contents(saved).items():
        for length in {0, len(content) - 1, *random.Random(0).choices(range(len(content)), k=100)}:
            path.write_bytes(content[:length])
            assert saved.latest()[1]["step"] == 1, (path.name, length)
            assert f"step-00000002 is damaged ({path.name} " in caplog.messages[-1]
            assert "using the one before it" in caplog.messages[-1]
        path.write_bytes(content)
    assert saved.latest()[1]["step"] == 2
    assert Checkpoints(saved.folder / "absent").restore(trained(1)) is None


def test_a_byte_changed_anywhere_is_noticed_or_says_the_same(saved):
    _, state = saved.latest()
    for path, content in contents(saved).items():
        draws, noticed = random.Random(1), 0
        for _ in range(100):
            changed = bytearray(content)
            changed[draws.randrange(len(content))] ^= draws.randrange(1, 256)
            path.write_bytes(changed)
            found = saved.latest()[1]
            assert found["step"] == 1 or found == state, (path.name, changed)
            noticed += found["step"] == 1
        path.write_bytes(content)
        # All but the blanks between the words of state.json.
        assert noticed == 100 or (path.name == checkpoints.STATE and noticed > 80)


def test_what_state_says_is_protected_digit_by_digit(saved):
    path = saved.all()[-1] / checkpoints.STATE
    text = path.read_text()
    changes = ('"step": 2', '"step": 3'), ('"epoch": 7', '"epoch": 8'), ('"sha256"', '"sha255"')
    others = ["", "{}", "[1]", "null", '{"sha256": 1}', '{"sha256": {}}', "[" * 100_000, '{"step": NaN}']
    without_sum = json.loads(text)
    del without_sum["sha256"][checkpoints.STATE]
    for new in [*(text.replace(*change) for change in changes), *others, json.dumps(without_sum)]:
        path.write_text(new)
        assert saved.latest()[1]["step"] == 1, new


@pytest.mark.parametrize("lost", [checkpoints.MODEL, checkpoints.OPTIMIZER, checkpoints.STATE, "*"])
def test_a_checkpoint_that_lost_files_is_passed_over(saved, lost):
    for path in saved.all()[-1].glob(lost):
        path.unlink()
    assert saved.restore(trained(1))["step"] == 1


def test_a_run_whose_checkpoints_are_all_damaged_does_not_start_anew(saved):
    for folder in saved.all():
        (folder / checkpoints.MODEL).write_bytes(b"")
    message = "all checkpoints in .* are damaged: .*step-00000001 is damaged .*or delete"
    with pytest.raises(RunDirectoryError, match=message):
        saved.restore(trained(1))


def test_damaged_checkpoints_do_not_take_the_place_of_whole_ones(saved):
    (saved.all()[-1] / checkpoints.MODEL).write_bytes(b"")
    shutil.copytree(saved.all()[0], saved.folder / "step-00000001.mine")
    saved = Checkpoints(saved.folder, keep=2)
    (saved.folder / "step-00000002").rename(saved.folder / "step-00000009")
    saved.save(trained(1), 3)
    assert [f.name for f in saved.all()] == ["step-00000001", "step-00000003"]
    assert (saved.folder / "step-00000001.mine").exists(), "a copy under another name is the user's"


def refusing(function, refused):
    """The function, but that it may not read this path."""

    def refuse(path, *arguments):
        if path == refused:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return function(path, *arguments)

    return refuse


def test_what_may_not_be_read_is_neither_absent_nor_passed_over(saved, monkeypatch):
    """A later save would remove it as damaged."""
    for name in (checkpoints.STATE, checkpoints.MODEL):
        monkeypatch.setattr(checkpoints, "open", refusing(open, saved.all()[-1] / name), raising=False)
        with pytest.raises(RunDirectoryError, match=f"cannot read .*step-00000002/{name}: permission denied"):
            saved.latest()
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, saved.folder))
    with pytest.raises(RunDirectoryError, match="cannot read .*checkpoints: permission denied"):
        saved.restore(trained(1))


def test_a_newer_format_is_refused(saved):
    folder = saved.all()[-1]
    state = json.loads((folder / checkpoints.STATE).read_text())
    assert state["format"] == checkpoints.FORMAT
    del state["sha256"][checkpoints.STATE]
    state["format"] += 1
    checkpoints.write_state(folder, [checkpoints.MODEL, checkpoints.OPTIMIZER], **state)
    with pytest.raises(RunDirectoryError, match=r"step-00000002 was written by a newer bert_tf, in format 2"):
        saved.latest()


def test_a_run_directory_that_is_gone_is_not_made_again(tmp_path):
    with pytest.raises(RunDirectoryError, match="its folder is gone; it was moved or deleted"):
        Checkpoints(tmp_path / "run" / "checkpoints").save(trained(1), 1)
    assert not (tmp_path / "run").exists()


def test_what_is_not_finite_is_not_saved(saved):
    for value, find in (
        (np.nan, lambda model: model.dense.kernel),
        (np.inf, lambda model: model.optimizer.variables[-1]),
    ):
        model = trained(1)
        variable = find(model)
        variable.assign(np.full(variable.shape, value))
        with pytest.raises(NonFiniteError, match=f"after step 3: '{variable.path}' is not finite"):
            saved.save(model, 3)
    assert sorted(p.name for p in saved.folder.iterdir()) == ["step-00000001", "step-00000002"]


def test_a_reader_whose_checkpoint_is_removed_takes_the_next(saved):
    names = []

    def read(folder, state):
        names.append(folder.name)
        if len(names) < 3:  # what the process that trains does meanwhile
            saved.save(trained(1), 2 + len(names))
            shutil.rmtree(folder)
        return set(load_file(folder / checkpoints.MODEL))

    assert saved.read(read) == {"dense/kernel", "dense/bias"}
    assert names == ["step-00000002", "step-00000003", "step-00000004"]

    def fail(folder, state):
        raise DataError("of another model")

    with pytest.raises(DataError, match="of another model"):
        saved.read(fail)
    with pytest.raises(RunDirectoryError, match="has no complete checkpoint yet"):
        Checkpoints(saved.folder.parent / "absent").read(read)


def test_a_checkpoint_that_vanishes_while_it_is_looked_at(saved, monkeypatch, caplog):
    inspect = checkpoints._inspect

    def slow(folder):
        if folder.name == "step-00000002":
            saved.save(trained(1), 3)
            shutil.rmtree(folder)
        if folder.name == "step-00000001":
            shutil.rmtree(folder, ignore_errors=True)
        return inspect(folder)

    monkeypatch.setattr(checkpoints, "_inspect", slow)
    assert saved.latest()[1]["step"] == 3
    assert not caplog.messages, "nothing is damaged"


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
    with pytest.raises(DataError, match="1 tensors that are not in the model, e.g. 'dense/bias'"):
        assign([v for v in model.variables if v.name == "kernel"], file)
    (tmp_path / "broken.safetensors").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot read .*broken"):
        assign(model.variables, tmp_path / "broken.safetensors")
