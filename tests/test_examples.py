"""The `Example:` of every public class and function runs, each alone in a directory of its own.

An example may use all public names, the names of its own module, np, keras, ops, tf, Path, dataclasses and bert_tf
without importing them. It may also use the objects and files below, which are made for it alone: write `tokenizer` or
"shards" in an example, and they are there.
"""

import dataclasses
import functools
import importlib
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import publish
from bert_tf.distillation import TERMS
from bert_tf.models import FAMILIES
from bert_tf.objectives import OBJECTIVES
from bert_tf.probing import PROBES
from bert_tf.tasks import METRICS, TASKS
from bert_tf.tokenizers import KINDS
from tfrecords.corpus.tokens import DocumentTokenizer

PACKAGES = [f"bert_tf.{name}" for name in (
    "backend", "checkpoints", "compression", "distillation", "export", "generation", "layers", "models", "objectives", "probing", "prompting", "reporting", "tasks", "testing", "tokenizers", "training", "vectors"
)] + ["tfrecords", "bert_tf"]  # fmt: skip


def public():
    """(package, name) -> class or function, of all packages."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in getattr(package, "__all__", None) or [name for name in vars(package) if name[0] != "_"]:
            value = getattr(package, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and name != "lazy_names":
                found[package.__name__, name] = value
    return found


def example(value):
    """The code of the example in a docstring; None without one."""
    match = re.search(r"^Example:\n((?:(?: +.*)?\n)*)", f"{inspect.getdoc(value) or ''}\n", re.MULTILINE)
    return match and textwrap.dedent(match[1])


PUBLIC = public()
EXAMPLES = {f"{package}.{name}": code for (package, name), value in PUBLIC.items() if (code := example(value))}
REGISTRIES = [FAMILIES, OBJECTIVES, TASKS, METRICS, KINDS, TERMS, PROBES]
NAMES = {name: value for (_, name), value in PUBLIC.items()}
NAMES |= {"FAMILIES": FAMILIES, "OBJECTIVES": OBJECTIVES, "TASKS": TASKS, "KINDS": KINDS}
NAMES |= {"np": np, "keras": keras, "ops": keras.ops, "tf": tf}
NAMES |= {"Path": Path, "dataclasses": dataclasses, "bert_tf": bert_tf}

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a good bad film in paris the one is . ,".split()
SENTENCES = ["a good film.", "the film is bad.", "in paris, a good one is the one.", "bad film."]


def encoder(layers=1):
    sizes = {"vocabulary_size": len(WORDS), "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
    sizes |= {"num_layers": layers, "max_positions": 128, "dropout": 0.0, "attention_dropout": 0.0}
    return NAMES["BertEncoder"](NAMES["BertConfig"](**sizes))


def gpt():
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
    return NAMES["GPT2Decoder"](NAMES["GPT2Config"](len(WORDS), **sizes))


def dataset():
    shards(Path("shards-of-dataset"))
    reader = NAMES["ShardReader"]("shards-of-dataset", tokenizer())
    corruption = NAMES["MaskedLMCorruption"](tokenizer(), NAMES["MaskingConfig"]())
    return reader.dataset(4, seed=0, corrupt=corruption).take(2)


def shards(path):
    books(Path("books-of-shards"))
    config = NAMES["ShardsConfig"](sequence_length=32)
    NAMES["write_shards"](["books-of-shards"], path, tokenizer(), config, workers=1)


def books(path):
    path.mkdir()
    (path / "book.txt").write_text("\n\n".join("\n".join(SENTENCES[i % 4 :] + SENTENCES) for i in range(16)))


def table(path):
    lines = [f"{text}\t{'pos' if i % 2 else 'neg'}" for i, text in enumerate(SENTENCES)]
    path.write_text("\n".join(["text\tlabel", *lines]) + "\n")


def conll(path):
    path.write_text("the O\nfilm O\nin O\nparis B-LOC\n. O\n\n" * 3)


def wic(path):
    path.mkdir()
    rows = []
    for first, second, label in [(0, 1, True), (1, 3, True), (0, 3, False)]:
        row = {"label": label}
        for number, text in ((1, SENTENCES[first]), (2, SENTENCES[second])):
            start = text.index("film")
            row |= {f"sentence{number}": text, f"start{number}": start, f"end{number}": start + 4}
        rows.append(row)
    for name in ("train", "val"):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def published(path):
    bert_tf.save(encoder(), tokenizer(), path)


def tagger(path):
    finetuned(path, encoder(), kind="tagging", labels=["O", "B-PER", "B-LOC"])


def classifier(path):
    finetuned(path, encoder(layers=2), kind="classification", labels=["neg", "pos"])


def finetuned(path, encoder, **settings):
    task = NAMES["build_task"]({"sequence_length": 32} | settings, tokenizer())
    model = task.model(encoder)
    described, arrays = publish(task, model, path)
    write_finetuned(model.backbone, arrays, described, task.tokenizer, path)


def run(path):
    published(Path("published-of-run"))
    bert_tf.load("published-of-run").save(path, format="run")


@functools.cache
def tokenizer():
    """One for all examples: nothing changes a tokenizer, and each has a slow graph of its own."""
    return NAMES["WordPieceTokenizer"](WORDS)


@functools.cache
def document_tokenizer(tokenizer, pieces):
    return DocumentTokenizer(tokenizer, pieces)


def exported(path):
    NAMES["write_saved_model"](NAMES["ServedEmbedding"](encoder(), tokenizer(), 32), path)


def scorer():
    return NAMES["text_scorer"](NAMES["MaskedLM"](encoder()), tokenizer())


#: Name of an object -> function that makes it.
OBJECTS = {f.__name__: f for f in (tokenizer, encoder, gpt, scorer, dataset)} | {"tmp_path": Path.cwd}
#: Name of a file or folder -> function(path) that writes it.
FILES = {"shards": shards, "books": books, "corpus": books, "exported": exported, "run": run, "WiC": wic}
FILES |= {"train.tsv": table, "dev.tsv": table, "train.conll": conll}
FILES |= {"bert-base-uncased": published, "bert-base-NER": tagger, "bert-base-SST2": classifier}
FILES["corpus.txt"] = lambda path: path.write_text("\n".join(SENTENCES))
FILES["vocab.txt"] = lambda path: path.write_text("\n".join(WORDS))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Function(name) -> a file or folder of FILES, written once and copied by each example."""
    folder = tmp_path_factory.mktemp("inputs")

    def get(name):
        if not (folder / name).exists():
            here = os.getcwd()
            os.chdir(tmp_path_factory.mktemp("writing"))
            FILES[name](folder / name)
            os.chdir(here)
        return folder / name

    return get


@pytest.fixture
def registries():
    """Takes what an example registers out of the lists again."""
    before = [set(registry) for registry in REGISTRIES]
    yield
    for registry, names in zip(REGISTRIES, before):
        for name in set(registry) - names:
            registry.remove(name)


def with_marks(path):
    """Models are exported in tests of their own: the same in examples is slow."""
    slow = path.startswith(tuple(f"bert_tf.{name}." for name in ("compression", "export", "probing", "testing")))
    return pytest.param(path, marks=pytest.mark.slow if slow else ())


def call_of(function):
    """A function that only takes the arguments: the contracts take long, and tests/testing checks them."""
    return inspect.signature(function).bind


@pytest.fixture
def few_graphs(path, monkeypatch):
    """What takes the time of an example are graphs of the library, which has tests of its own.

    Here it computes operation by operation, but for examples that define something to be traced, or export a model.
    """
    monkeypatch.setattr("bert_tf.backend.tensorflow.trainer.compiles_for_cpus", lambda: False)
    monkeypatch.setattr("tfrecords.shards.jobs.DocumentTokenizer", document_tokenizer)
    has_graphs = re.search(r"\b(class|def|lambda|tf\.function|Served)|export|save", EXAMPLES[path])
    tf.config.run_functions_eagerly(has_graphs is None)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("path", [with_marks(path) for path in sorted(EXAMPLES)])
def test_the_example_runs(path, tmp_path, monkeypatch, written, registries, few_graphs):
    package, _, name = path.rpartition(".")
    code = EXAMPLES[path]
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        is_output = f"write_{file}(" in code
        if re.search(rf'"{re.escape(file)}[/"]', code) and not is_output:
            source = written(file)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, file)
    module = sys.modules[PUBLIC[package, name].__module__]
    names = NAMES | vars(module) | {n: v for (p, n), v in PUBLIC.items() if p == package}
    if package == "bert_tf.testing" and name != "check_served":
        names[name] = call_of(PUBLIC[package, name])
    names |= {key: make() for key, make in OBJECTS.items() if re.search(rf"\b{key}\b", code)}
    exec(compile(code, f"the example of {path}", "exec"), names)


def test_every_public_class_has_an_example():
    classes = {name: value for (_, name), value in PUBLIC.items() if inspect.isclass(value)}
    without = {n for n, value in classes.items() if not example(value) and not issubclass(value, Exception)}
    assert not without
