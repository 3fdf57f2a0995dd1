"""The average of checkpoints: against NumPy, and what the new run directory can be used for."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.models import Transformer, TransformerConfig, describe
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.averaging import average_checkpoints
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.converting import write_run
from bert_tf.training.run_directory import RunDirectory

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on a mat . <extra_id_1> <extra_id_0>"
TOKENIZER = WordPieceTokenizer(WORDS.split())
STEPS = (10, 20, 30, 40)


def make_run(path, model, record, steps=STEPS):
    """A run with a checkpoint of other random weights at each of these steps."""
    first = {v.path: np.ascontiguousarray(v) for v in model.weights}
    write_run(path, record, TOKENIZER, first, steps[0])
    saved = [first]
    for step in steps[1:]:
        random = np.random.default_rng(step)
        saved.append({k: v + random.normal(size=v.shape).astype("float32") for k, v in first.items()})
        folder = path / "checkpoints" / f"step-{step:08d}"
        folder.mkdir()
        save_file(saved[-1], folder / MODEL)
        write_state(folder, [MODEL], step=step)
    return saved


@pytest.fixture
def run(tmp_path):
    size = len(TOKENIZER.vocabulary)
    model = Denoising(Transformer(TransformerConfig(size, 16, num_layers=1, num_heads=2, intermediate_size=32)))
    record = {"model": describe(model.backbone.config), "data": {"sequence_length": 16}, "train": {"steps": 40}}
    record |= {"objective": {"name": "denoising"}, "optimizer": {"name": "adafactor"}}
    return tmp_path / "run", make_run(tmp_path / "run", model, record)


def test_the_mean_is_that_of_numpy(run, tmp_path, capsys):
    path, saved = run
    assert main(["convert", str(path), str(tmp_path / "mean"), "--average", "3"]) == 0
    assert capsys.readouterr().out.endswith("mean: the mean of the checkpoints of steps 20, 30, 40\n")
    found = load_file(RunDirectory.open(tmp_path / "mean").checkpoints.latest()[0] / MODEL)
    assert found.keys() == saved[0].keys()
    for name, tensor in found.items():
        expected = np.mean([tensors[name].astype("float64") for tensors in saved[1:]], axis=0)
        assert tensor.dtype == np.float32
        np.testing.assert_allclose(tensor, expected, rtol=1e-7, atol=0, err_msg=name)


def test_the_result_is_a_run_that_loads_and_generates(run, tmp_path):
    path, saved = run
    assert average_checkpoints(path, tmp_path / "mean", last=2) == [30, 40]
    config = RunDirectory.open(tmp_path / "mean").config()
    assert config["averaged"] == {"run": str(path), "steps": [30, 40]}
    assert not {"optimizer", "train"} & config.keys()
    loaded = bert_tf.load(tmp_path / "mean")
    assert type(loaded.objective) is Denoising and not loaded.report.fresh
    table = loaded.encoder.embedding_table
    name = table.path
    np.testing.assert_allclose(table, (saved[2][name] + saved[3][name]) / 2, rtol=1e-6, atol=1e-7)
    assert isinstance(loaded.generate("the cat sat on a"), str)


def test_a_damaged_checkpoint_is_left_out(run, tmp_path, caplog):
    path, _ = run
    (path / "checkpoints" / "step-00000030" / MODEL).write_bytes(b"damaged")
    assert average_checkpoints(path, tmp_path / "mean", last=3) == [10, 20, 40]
    assert "step-00000030 is damaged" in caplog.text


def test_refusals(run, tmp_path):
    path, _ = run
    message = r"holds 4 undamaged checkpoints \(steps 10, 20, 30, 40\), fewer than the 5 .* train.keep_checkpoints=5"
    with pytest.raises(RunDirectoryError, match=message):
        average_checkpoints(path, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
    with pytest.raises(ConfigError, match="at least 2 checkpoints, got last=1"):
        average_checkpoints(path, tmp_path / "mean", last=1)
    (tmp_path / "mean").mkdir()
    (tmp_path / "mean" / "notes").touch()
    with pytest.raises(RunDirectoryError, match="not an empty folder"):
        average_checkpoints(path, tmp_path / "mean", last=2)
    file = path / "config.yaml"
    file.write_text(file.read_text() + "task: {name: classification}\n")
    with pytest.raises(ConfigError, match="fine-tuning, which keeps its best epoch alone"):
        average_checkpoints(path, tmp_path / "other", last=2)
