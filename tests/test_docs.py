"""The code of the guides in docs/ runs from top to bottom."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bert_tf
from bert_tf import samples
from bert_tf.cli.main import main
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.objectives import MaskedLM
from bert_tf.tokenizers import train_wordpiece
from tfrecords import ShardsConfig, read_texts, write_shards

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BERT = ROOT / "tests" / "fixtures" / "checkpoints" / "bert"
#: The pages whose code is executed: what users copy.
PAGES = sorted([*(DOCS / "guides").glob("*.md"), *(DOCS / "coming_from").glob("*.md"), DOCS / "index.md"])
#: Pages that take more than a few seconds.
SLOW = {"fine_tune"}
#: What a page does for hours or on large models, done small here: a pattern, and what stands in its place.
SMALLER = [(r"hf://[\w-]+/(bert|gpt)[\w.-]*", r"\1"), (r"steps_per_epoch=100", "steps_per_epoch=3")]


def blocks(page, languages="python|sh"):
    """[language, code] of a page. A block of `console` shows what is not executed here, such as Docker or a cluster."""
    found = re.findall(rf"^```({languages})\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [(language, _smaller(code)) for language, code in found]


def _smaller(code):
    for pattern, replacement in SMALLER:
        code = re.sub(pattern, replacement, code)
    return code


def run_commands(code):
    """The `bert-tf` commands of a block, each in this process."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "bert-tf":
            assert main(words[1:]) == 0, line


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the pages name: "books" and "reports", folders of text; "bert", a published model; "tokenizer" and "shards"."""
    folder = tmp_path_factory.mktemp("docs")
    lines = samples.STATE_OF_THE_UNION.read_text(encoding="utf-8").splitlines()
    for name, part in (("books", lines[:4]), ("reports", lines[4:6])):
        (folder / name).mkdir()
        (folder / name / "speeches.jsonl").write_text("\n".join(part), encoding="utf-8")
    tokenizer = train_wordpiece(read_texts(folder / "books"), 600, lowercase=True)
    tokenizer.save(folder / "tokenizer")
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32}
    model = MaskedLM(BertEncoder(BertConfig(tokenizer.vocabulary_size, **sizes)))
    bert_tf.save(model, tokenizer, folder / "bert")
    write_shards(folder / "books", folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False)
    return folder


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in SLOW), id=page.stem) for page in PAGES]
)
def test_the_code_of_a_page(page, files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for language, code in blocks(page):
        if language == "sh":
            run_commands(code)
        else:
            exec(compile(code, str(page), "exec"), names)


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
    pages = [code for _, code in blocks(DOCS / "guides" / "own_head.md", "python")]
    data, load, rest = pages[0].partition("loaded = ")
    inside = textwrap.indent(load + rest + pages[way], "    ")
    program = DEVICES + data + 'with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():\n' + inside
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("*.keras")} == {("mean.keras", "plain.keras")[way - 1]}
