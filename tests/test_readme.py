"""What the README prints is what works."""

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf import samples
from bert_tf.cli.main import COMMANDS
from bert_tf.tokenizers import train_wordpiece
from tfrecords import ShardsConfig, read_texts, write_shards

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_first_blocks_install_run_and_test():
    install, test = blocks("sh")[:2]
    assert install.splitlines()[-1] == "bert-tf quickstart"
    assert test == "python -m pytest\n"
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script  # it runs these very lines


def test_every_command_and_configuration_named_exists():
    named = set(re.findall(r"bert-tf ([a-z][a-z-]*)", README))
    assert named <= set(COMMANDS)
    for config in re.findall(r"--config ([a-z/_]+)", README):
        assert (ROOT / "configs" / f"{config}.yaml").is_file(), config


def test_links_lead_somewhere():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_extras_named_exist():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for extra in re.findall(r"\.\[([a-z]+)\]", README):
        assert extra in setup["options.extras_require"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    corpus = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    tokenizer = train_wordpiece(read_texts(corpus), 2000, lowercase=True)
    write_shards(corpus, folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False)
    return folder


def test_the_script_of_ones_own_runs(folder):
    script = next(b for b in blocks("python") if "objective.fit" in b).replace("steps_per_epoch=100", "steps_per_epoch=3")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Epoch 3/3" in done.stdout and "masked_lm_accuracy" in done.stdout
