"""What `precision: auto` chooses, that a run keeps it, and that all workers have the same."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from bert_tf import config
from bert_tf.errors import RunDirectoryError
from bert_tf.training import precision
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.run_directory import RunDirectory

MODEL = SimpleNamespace(hidden_size=128, intermediate_size=512)


@pytest.fixture
def machine(monkeypatch):
    """function(ratios) that makes this a CPU with bfloat16 whose products have these ratios."""

    def make(*ratios):
        monkeypatch.setattr(precision, "has_bfloat16", lambda: True)
        monkeypatch.setattr(precision, "_ratios", lambda hidden, intermediate, rows, stored: list(ratios))

    return make


@pytest.mark.parametrize(("ratios", "chosen", "shown"), [
    ((2.0,), "mixed_bfloat16", "16 tokens in bfloat16 are 2 times"),
    ((1.05,), "float32", "16 tokens in bfloat16 are 1.1 times"),
    ((1.2, 1.0), "float32", "16 and 512 tokens in bfloat16 are 1.2 and 1 times"),
])  # fmt: skip
def test_bfloat16_must_be_clearly_faster_with_every_number_of_rows(ratios, chosen, shown, machine, capsys):
    machine(*ratios)
    assert precision.choose(MODEL, (16, 512)[: len(ratios)]) == chosen
    line = f"precision: {chosen} (on this CPU the model's products of {shown} as fast as in float32)"
    assert capsys.readouterr().err == line + "\n"


def test_where_nothing_is_timed(machine, monkeypatch, capsys):
    machine()
    monkeypatch.setattr(precision, "_ratios", None)
    assert precision.choose(SimpleNamespace(hidden_size=64, intermediate_size=256), (16,)) == "float32"
    assert precision.choose(MODEL, (16,), on_tpu=True) == "mixed_bfloat16"
    monkeypatch.setattr(precision, "has_bfloat16", lambda: False)
    assert precision.choose(MODEL, (16,)) == "float32"
    gpu = SimpleNamespace(name="GPU:0")
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [gpu])
    for capability, chosen in (((8, 0), "mixed_bfloat16"), ((7, 5), "float32"), (None, "float32")):
        details = {"compute_capability": capability} if capability else {}
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
        assert precision.choose(MODEL, (16,)) == chosen
    assert "the GPU GPU:0 has no bfloat16" in capsys.readouterr().err


def test_the_instructions_of_the_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "Path", lambda name: tmp_path / "cpuinfo")
    for line, found in (
        ("flags\t\t: fpu avx512f avx512_bf16 sse", True),
        ("flags\t\t: fpu avx512f amx_bf16", True),
        ("Features\t: fp asimd bf16", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        ("model name\t: bf16", False),
    ):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{line}\n")
        assert precision.has_bfloat16() is found
    monkeypatch.setattr(precision, "Path", lambda name: tmp_path / "none")
    assert precision.has_bfloat16() is False


def test_products_of_training_count_their_casts_and_those_of_an_export_do_not(monkeypatch):
    timed = []

    def medians(turns, seconds):
        for turn in turns:
            turn()
        timed.append((len(turns), seconds))
        return 4.0, 2.0, 3.0  # float32, bfloat16, cast

    monkeypatch.setattr(precision, "_medians", medians)
    monkeypatch.setattr(precision, "_LARGEST_PRODUCT", 16 * 32 * 10)
    # 40 rows are timed on 10; each matrix is in three products, and cast twice.
    training = precision._ratios(16, 32, (40,), stored=False)
    assert training == [pytest.approx(3 * 4 * 4 / (3 * 4 * 2 + 2 * 3))]
    assert precision._ratios(16, 32, (40, 10), stored=True) == [2.0, 2.0]
    assert timed == [(3, 0.2), (3, 0.1), (3, 0.1)]


def test_the_functions_take_turns():
    order = []
    times = precision._medians([lambda name=name: order.append(name) for name in "abc"], seconds=0.0)
    assert order == list("abc") * 2 and len(times) == 3 and min(times) > 0


@pytest.mark.parametrize("kind", [PretrainConfig, FinetuneConfig])
def test_a_run_keeps_its_precision_on_another_machine(kind, machine, tmp_path):
    def resolved(setting):
        experiment = config.build(kind, {"train": {"precision": setting}})
        run = RunDirectory.claim(tmp_path / "run", experiment)
        experiment = precision.resolve(experiment, run, tf.distribute.get_strategy(), MODEL, 2048)
        run.record(experiment)
        return experiment.train.precision, config.read_yaml(tmp_path / "run" / "config.yaml")["train"]["precision"]

    machine(2.0)
    assert resolved("auto") == ("mixed_bfloat16", "mixed_bfloat16")
    machine(0.5)
    assert resolved("auto") == ("mixed_bfloat16", "mixed_bfloat16")
    assert resolved("mixed_bfloat16") == ("mixed_bfloat16", "mixed_bfloat16")
    with pytest.raises(RunDirectoryError, match="train.precision is 'mixed_bfloat16', this one's 'float32'"):
        resolved("float32")


def test_the_chief_chooses_for_all_workers(machine, monkeypatch, tmp_path):
    machine(0.5)
    monkeypatch.setattr(precision, "of_chief", lambda strategy, number: 1.0)  # the chief's machine is another
    for chief in (True, False):
        monkeypatch.setattr(precision, "is_chief", lambda strategy: chief)
        if not chief:
            monkeypatch.setattr(precision, "_ratios", None)  # nor does this worker spend time on it
        experiment = config.build(PretrainConfig, {"train": {"precision": "auto"}})
        run = RunDirectory(tmp_path / "run")
        experiment = precision.resolve(experiment, run, tf.distribute.get_strategy(), MODEL, 2048)
        assert experiment.train.precision == "mixed_bfloat16"
