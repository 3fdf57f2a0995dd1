"""The code of each page of docs/ runs from top to bottom."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bert_tf
from bert_tf import samples
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.objectives import MaskedLM
from bert_tf.tokenizers import train_wordpiece
from tfrecords import ShardsConfig, read_texts, write_shards

ROOT = Path(__file__).parent.parent
#: All but the results, whose code reads the runs of a study.
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem != "results")
BERT = ROOT / "tests" / "fixtures" / "checkpoints" / "bert"


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the pages name: "bert", a published model, and "shards"."""
    folder = tmp_path_factory.mktemp("docs")
    lines = samples.STATE_OF_THE_UNION.read_text(encoding="utf-8").splitlines()
    (folder / "corpus.jsonl").write_text("\n".join(lines[:4]), encoding="utf-8")
    tokenizer = train_wordpiece(read_texts(folder / "corpus.jsonl"), 600, lowercase=True)
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32}
    model = MaskedLM(BertEncoder(BertConfig(tokenizer.vocabulary_size, **sizes)))
    bert_tf.save(model, tokenizer, folder / "bert")
    write_shards(
        folder / "corpus.jsonl", folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False
    )
    return folder


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem == "fine_tune"), id=page.stem) for page in PAGES]
)
def test_the_code_of_a_page(page, files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for block in blocks(page):
        block = block.replace("steps_per_epoch=100", "steps_per_epoch=3")
        exec(compile(block, str(page), "exec"), names)


DEVICES = """
import tensorflow as tf

devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", [1, 2])
def test_a_head_of_ones_own_on_two_devices(way, tmp_path):
    """In a process of its own, whose devices are set up before TensorFlow starts."""
    shutil.copytree(BERT, tmp_path / "bert")
    pages = blocks(ROOT / "docs" / "own_head.md")
    data, load, rest = pages[0].partition("loaded = ")
    inside = textwrap.indent(load + rest + pages[way], "    ")
    program = DEVICES + data + 'with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():\n' + inside
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("*.keras")} == {("mean.keras", "plain.keras")[way - 1]}
