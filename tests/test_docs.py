"""The code of the guides in docs/ runs from top to bottom."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import fsspec
import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import samples
from bert_tf.cli.main import main, make_parser
from bert_tf.models import BertConfig, BertEncoder, build_backbone, build_config
from bert_tf.objectives import CausalLM, Denoising, MaskedLM
from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_wordpiece
from bert_tf.tokenizers.kinds import trainers
from tfrecords import ShardsConfig, read_texts, write_shards

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BERT = ROOT / "tests" / "fixtures" / "checkpoints" / "bert"
#: The pages whose code is executed: what users copy.
PAGES = sorted([*(DOCS / "guides").rglob("*.md"), *(DOCS / "coming_from").glob("*.md"), DOCS / "index.md"])
#: Pages of a few seconds. The others are slow tests.
QUICK = {"choices", "own_training", "questions", "tokenizers"}
#: What a page does for hours or on large models, done small here: a pattern, and what stands in its place.
SMALLER = [
    (r"bert_mini", "bert_tiny"),
    (r"hf://dslim/bert-base-NER", "ner"),
    (r"hf://[\w-]+/(bert|gpt|t5)[\w.-]*", r"\1"),
    (r"(s3|gs)://bucket", "memory://bucket"),
    (r"steps_per_epoch=100", "steps_per_epoch=3"),
    (r"bert-tf pretrain --config \S+", r"\g<0> --set train.steps=4"),
    (r"train\.steps=\d+", "train.steps=4 --set train.batch_size=4 --set train.precision=float32"),
    (r'"steps": [\d_]+', '"steps": 4, "batch_size": 4, "precision": "float32"'),
    (r"pretrain/bert_base\b", "pretrain/bert_tiny"),
    (r"--size \d+", "--size 600"),
    (r"objective\.words\.size=\d+", "objective.words.size=600"),
]
#: In the place of the trial that measures how many updates fit into the minutes of `bert_tf.pretrain`.
FEW = {"steps": 4, "batch_size": 4, "precision": "float32", "log_every": 2, "checkpoint_every": 2, "eval_every": 4}


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
    """What the pages name.

    "books" and "reports", folders of text; "bert", a published model; "tokenizer" and "shards"; "ner", a published tagger;
    "sentiment", a run of fine-tuning; "gpt" and "t5", published models that write; "elmo"; train.tsv, dev.tsv and test.tsv, labelled texts.
    """
    keras.utils.set_random_seed(0)  # a model without training may be the one that a comparison refuses
    folder = tmp_path_factory.mktemp("docs")
    lines = samples.STATE_OF_THE_UNION.read_text(encoding="utf-8").splitlines()
    for name, part in (("books", lines[:6]), ("reports", lines[6:8])):
        (folder / name).mkdir()
        (folder / name / "speeches.jsonl").write_text("\n".join(part), encoding="utf-8")
    tokenizer = train_wordpiece(read_texts(folder / "books"), 600, lowercase=True)
    tokenizer.save(folder / "tokenizer")
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32}
    model = MaskedLM(BertEncoder(BertConfig(tokenizer.vocabulary_size, **sizes)))
    bert_tf.save(model, tokenizer, folder / "bert")
    shutil.copytree(ROOT / "tests" / "fixtures" / "elmo", folder / "elmo")
    writers = {
        "gpt": (CausalLM, {"family": "gpt2", **sizes, "max_positions": 128}, trainers()["byte_level_bpe_gpt2"]),
        "t5": (Denoising, {"family": "t5", **sizes, "head_size": 8}, trainers()["unigram_t5"]),
    }
    for name, (objective, settings, trainer) in writers.items():
        own = trainer.train(read_texts(folder / "books"), 600)
        model = objective(build_backbone(build_config(settings, own.vocabulary_size)))
        bert_tf.save(model, own, folder / name)
    write_shards(folder / "books", folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False)
    sentence = {"words": ["Anna", "met", "Paul", "in", "Seoul"], "tags": ["B-PER", "O", "B-PER", "O", "B-LOC"]}
    _write_task(folder, "ner", "hf", {"kind": "tagging"}, [sentence])
    reviews = [{"text": "a warm film", "label": "1"}, {"text": "a dull mess", "label": "0"}]
    _write_task(folder, "sentiment", "run", {"kind": "classification"}, reviews)
    for split, path in samples.REVIEWS.items():
        lines = path.read_text(encoding="utf-8").splitlines()[:25]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _write_task(folder, name, format, task, rows):
    """A model of a task above "bert", whose head has random weights."""
    loaded = bert_tf.load(folder / "bert")
    task = build_task(task | {"sequence_length": 32}, loaded.tokenizer)
    task = task.learn(task.read(rows))
    bert_tf.save(task.model(loaded.encoder), None, folder / name, format, task)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem not in QUICK), id=page.stem) for page in PAGES]
)
def test_the_code_of_a_page(page, files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    fsspec.filesystem("memory").store.clear()
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("bert_tf.training.budget._schedule", lambda *arguments: FEW)
    names = {"__name__": page.stem}
    for language, code in blocks(page):
        if language == "sh":
            run_commands(code)
        else:
            exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_only_shown_can_be_typed(page):
    for _, code in blocks(page, "console"):
        for line in code.replace("\\\n", " ").splitlines():
            if line.startswith("bert-tf "):
                words = shlex.split(line, comments=True)[1:]
                make_parser(only=words[0]).parse_args(words)  # exits where it is wrong


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs the extra: pip install -e '.[jax]'")
def test_the_training_script_on_jax(files, tmp_path):
    """What JAX trained is opened on TensorFlow: the same outputs, and the optimizer goes on."""
    shutil.copytree(files / "shards", tmp_path / "shards")
    code = blocks(DOCS / "guides" / "own_training.md", "python")[0][1]
    code += """
import keras, numpy as np
ids = np.arange(8, dtype="int32")[None]
np.save("expected.npy", objective.backbone({"token_ids": ids})["sequence_output"])
objective.save("model.keras")
"""
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    objective = bert_tf.load_keras(tmp_path / "model.keras")
    assert int(objective.optimizer.iterations) == 9
    ids = np.arange(8, dtype="int32")[None]
    expected = np.load(tmp_path / "expected.npy")
    np.testing.assert_allclose(objective.backbone({"token_ids": ids})["sequence_output"], expected, atol=1e-5)


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
