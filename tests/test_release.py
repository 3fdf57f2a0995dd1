"""The wheel and the sdist hold what a user needs: built here, and used outside the repository."""

import configparser
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import bert_tf

ROOT = Path(__file__).parent.parent

#: What somebody does first, with nothing but the installed library.
FIRST_STEPS = """
import bert_tf, tensorflow as tf
from pathlib import Path
from bert_tf import config, samples
from bert_tf.probing import Cloze
from bert_tf.training.pretraining import PretrainConfig

assert "site-packages" in bert_tf.__file__, bert_tf.__file__
assert config.load(PretrainConfig, "laptop/best").train.steps
assert Cloze().read("english")
assert all(Path(path).is_file() for path in (samples.STATE_OF_THE_UNION, *samples.REVIEWS.values()))
lm = bert_tf.load("run")
assert len(lm.fill_mask("The [MASK] of the United States.")) == 1
rows = {"text": ["good", "bad"] * 8, "label": ["1", "0"] * 8}
model = bert_tf.finetune("run", train=rows, dev=0.5, task="classification", output="task", epochs=1)
served = tf.saved_model.load(str(model.export())).signatures["serving_default"]
assert served(text=tf.constant(["good"]))["label"].numpy()[0] in (b"0", b"1")
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The folder of the sdist and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_twine_finds_nothing(distributions):
    files = sorted(distributions.iterdir())
    assert [path.name for path in files] == [
        f"bert_tf-{bert_tf.__version__}-py3-none-any.whl",
        f"bert_tf-{bert_tf.__version__}.tar.gz",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_wheel_works_outside_the_repository(distributions, tmp_path):
    """In an environment of its own; the packages that it depends on are those of this environment."""
    (wheel,) = distributions.glob("*.whl")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    install = ["--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # A line of a .pth file is one more folder to import from; the .pth files in that folder, such as that of an
    # editable install, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    folder = tmp_path / "work"
    folder.mkdir()
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden} | {"TF_CPP_MIN_LOG_LEVEL": "3"}

    def run(*command):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    command = tmp_path / "venv" / "bin" / "bert-tf"
    assert run(command, "--version") == f"bert-tf {bert_tf.__version__}\n"
    corpus = run(python, "-c", "from bert_tf import samples; print(samples.STATE_OF_THE_UNION)").strip()
    run(command, "vocab", corpus, "--output", "tokenizer", "--size", "1000")
    run(command, "shards", corpus, "--tokenizer", "tokenizer", "--output", "shards", "--sequence-length", "32")
    sizes = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
    sets = [f"--set=model.{name}={value}" for name, value in sizes.items()]
    pretrain = [command, "pretrain", "--shards", "shards", "--output", "run", "--config", "laptop/roberta"]
    run(*pretrain, "--set=train.steps=2", *sets)
    assert (folder / "run" / "report.html").read_text().count("<style")
    run(python, "-c", FIRST_STEPS)


def test_the_version_stands_in_one_place():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["version"] == "attr: bert_tf.__version__"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {bert_tf.__version__}" in changes  # what is released is described
    assert "version" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace("cff-version", "")
