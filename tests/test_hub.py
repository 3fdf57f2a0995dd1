"""hf:// addresses, against a server that speaks the hub's protocol."""

import json
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hub_server import serving
from huggingface_hub import constants
from tasks import tiny

import bert_tf
from bert_tf import hub as hub_module
from bert_tf.cli.main import main
from bert_tf.errors import DataError
from bert_tf.hub import local_data, local_file, local_model, local_tokenizer
from bert_tf.tokenizers import load_tokenizer
from tfrecords.corpus.files import find_files


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with serving() as server:
        connect(monkeypatch, server.url, tmp_path / "cache")
        yield server
    hub_module._fetch.cache_clear()


def connect(monkeypatch, url, cache):
    hub_module._fetch.cache_clear()
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))


def offline(monkeypatch):
    hub_module._fetch.cache_clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


MODEL = {"config.json": b"{}", "model.safetensors": b"12345678", "vocab.txt": b"[PAD]\n"}


def test_a_model_is_loaded_from_an_address(hub, tmp_path):
    encoder, tokenizer = tiny.encoder(), tiny.tokenizer()
    bert_tf.save(encoder, tokenizer, tmp_path / "published")
    files = {file.name: file.read_bytes() for file in (tmp_path / "published").iterdir()}
    hub.add("models", "me/tiny", files)
    loaded = bert_tf.load("hf://me/tiny")
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    for ours, theirs in zip(encoder.variables, loaded.encoder.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert load_tokenizer("hf://me/tiny").fingerprint == tokenizer.fingerprint
    assert hub.fetched.count("model.safetensors") == 1


def test_a_preset_of_kerashub_is_loaded_from_an_address(hub):
    archive = Path(__file__).parent / "fixtures" / "checkpoints" / "keras_hub" / "bert_classifier.zip"
    with zipfile.ZipFile(archive) as file:
        hub.add("models", "me/preset", {name: file.read(name) for name in file.namelist()})
    loaded = bert_tf.load("hf://me/preset")
    assert (loaded.source.format, loaded.task.kind) == ("keras_hub", "classification")
    assert loaded.predict("the people").keys() >= {"label", "probability"}
    assert "expected.npz" not in hub.fetched


def test_only_weights_and_text_are_fetched_and_for_a_tokenizer_its_files_alone(hub):
    others = "pytorch_model.bin tf_model.h5 model.fp16.safetensors modeling.py onnx/model.onnx README.md".split()
    hub.add("models", "me/model", MODEL | dict.fromkeys(others, b"x"))
    local_tokenizer("hf://me/model")
    assert hub.fetched == ["vocab.txt"]
    assert Path(local_tokenizer("hf://me/model/vocab.txt")).read_bytes() == b"[PAD]\n"
    folder = Path(local_model("hf://me/model"))
    assert sorted(set(hub.fetched)) == sorted(file.name for file in folder.iterdir()) == sorted(MODEL)


def test_revisions_and_folders(hub):
    first = hub.add("models", "me/model", MODEL | {"config.json": b"first"}, "v1")
    hub.add("models", "me/model", MODEL | {"config.json": b"now"})
    hub.add("models", "me/model", MODEL | {"config.json": b"proposed"}, "refs/pr/1")
    hub.add("models", "me/pair", {f"{part}/{file}": data for part in "ab" for file, data in MODEL.items()})
    contents = {
        "hf://me/model": b"now", "hf://models/me/model": b"now", "hf://me/model/": b"now", "hf://me/model@v1": b"first",
        f"hf://me/model@{first}": b"first", "hf://me/model@refs/pr/1": b"proposed", "hf://me/pair/a": b"{}",
        "hf://me/pair@main/b": b"{}",
    }  # fmt: skip
    assert {address: Path(local_model(address), "config.json").read_bytes() for address in contents} == contents


def test_what_is_in_the_cache_needs_no_connection(hub, monkeypatch, tmp_path):
    commit = hub.add("models", "me/model", MODEL)
    folder = local_model("hf://me/model")
    hub.requests.clear()
    offline(monkeypatch)
    assert local_model("hf://me/model") == local_model(f"hf://me/model@{commit}") == folder
    assert not hub.requests
    with pytest.raises(DataError, match=r"hf://me/other is not in the cache .*/cache, and HF_HUB_OFFLINE is set; co"):
        local_model("hf://me/other")


def test_a_hub_that_does_not_answer(monkeypatch, tmp_path):
    connect(monkeypatch, "http://127.0.0.1:9", tmp_path)
    with pytest.raises(DataError, match=r"hf://me/model is not in the cache .*, and http://127.0.0.1:9 did not answ"):
        local_model("hf://me/model")
    hub_module._fetch.cache_clear()


def test_an_interrupted_download_continues(hub, monkeypatch):
    data = bytes(range(256)) * 4096
    hub.add("models", "me/model", MODEL | {"model.safetensors": data})
    hub.cut["model.safetensors"] = 300_000
    assert Path(local_model("hf://me/model"), "model.safetensors").read_bytes() == data
    assert hub.fetched.count("model.safetensors") == 2


@pytest.mark.parametrize("address, message", [
    ("hf://me/none", r"hf://me/none: there is no such model at http://127\.0\.0\.1:\d+, or it is private; check"),
    ("hf://me/gated", r"accept them at http://127\.0\.0\.1:\d+/me/gated, then log in with 'hf auth login'"),
    ("hf://me/model@v9", r"hf://me/model@v9: there is no revision 'v9'; its branches and commits are at http"),
    ("hf://me/pickle", r"hf://me/pickle holds no model\.safetensors, and pickles .*hf://me/pickle@refs/pr/1\)"),
    ("hf://me/empty", r"hf://me/empty holds none of the files that are read: config\.json, model\.safetensors"),
    ("hf://bert", r"hf://bert is not a Hugging Face Hub address; it must look like hf://owner/name"),
    ("hf://datasets/me/texts", r"hf://datasets/me/texts cannot be used here: what is needed is a model, hf://own"),
    ("hf://me/a..b", r"hf://me/a\.\.b is not a Hugging Face Hub address: "),
])  # fmt: skip
def test_what_cannot_be_had(hub, address, message):
    hub.add("models", "me/model", MODEL)
    hub.add("models", "me/pickle", {"config.json": b"{}", "pytorch_model.bin": b"x"})
    hub.add("models", "me/empty", {"README.md": b"x"})
    hub.gated.add("me/gated")
    with pytest.raises(DataError) as caught:
        local_model(address)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)


def test_corpora_and_labelled_files(hub):
    files = {"data/a.jsonl": b'{"text": "one"}\n', "data/b.txt": b"two\n", "data/train.tsv": b"text\tlabel\n"}
    files["run.py"] = b"x"
    hub.add("datasets", "me/texts", files)
    assert [file.name for file in find_files("hf://datasets/me/texts/data/*.txt")] == ["b.txt"]
    assert hub.fetched == ["data/b.txt"]
    assert [file.path.name for file in find_files("hf://datasets/me/texts/data")] == ["a.jsonl", "b.txt"]
    assert sorted(hub.fetched) == sorted(name for name in files if name != "run.py")
    assert Path(local_file("hf://datasets/me/texts/data/train.tsv")).read_bytes() == files["data/train.tsv"]
    assert local_file("hf://datasets/me/texts/*/train.*") == local_file("hf://datasets/me/texts/data/train.tsv")
    with pytest.raises(DataError, match="texts/data must be one file, but is data; name one of its files"):
        local_file("hf://datasets/me/texts/data")
    message = "hf://me/texts cannot be used here: what is needed is a file of a data set, hf://datasets/owner/name/"
    with pytest.raises(DataError, match=message):
        local_data("hf://me/texts")


def test_a_task_reads_parquet_of_the_hub(hub, tmp_path):
    """Classes are stored as numbers, and their names in the metadata of the package datasets."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    feature = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"text": {"dtype": "string"}, "label": feature}}})}
    table = pyarrow.table({"text": ["good", "bad", "fine"], "label": [1, 0, 1]}).replace_schema_metadata(metadata)
    parquet.write_table(table, tmp_path / "a.parquet")
    hub.add("datasets", "me/films", {"train.parquet": (tmp_path / "a.parquet").read_bytes()})
    from bert_tf.tasks import build_task

    task = build_task({"kind": "classification", "sequence_length": 16}, tiny.tokenizer())
    examples = task.read("hf://datasets/me/films/train.parquet")
    task = task.learn(examples)
    assert (examples.texts, examples.labels) == (["good", "bad", "fine"], ["pos", "neg", "pos"])
    assert task.labels == ("neg", "pos") and examples.where(2).endswith("train.parquet, row 3")


def test_paths_of_this_machine_stay(tmp_path):
    for path in ("runs/bert", tmp_path, "hf:/a/b"):
        assert local_model(path) == local_tokenizer(path) == local_data(path) == local_file(path) == path


@pytest.mark.parametrize("answer", [
    {}, {"sha": 3}, {"sha": "a\0b"}, {"sha": "1" * 40, "siblings": "all of them"}, "no",
], ids=str)  # fmt: skip
def test_a_hub_that_answers_with_something_else(hub, monkeypatch, answer):
    hub.add("models", "me/model", MODEL)
    monkeypatch.setattr(hub, "description", answer)
    with pytest.raises(DataError, match="hf://me/model"):
        local_model("hf://me/model")


@pytest.mark.parametrize("stalls, message", [
    ("silent", "is not in the cache .*, and http://.* did not answer: .*Timeout"),
    ("slow", r"has sent \d+ bytes in 1 seconds; check the connection. The same command continues where it stopped"),
    ("stops", r"has sent \d+ bytes in 1 seconds"),
    ("busy", "http://.* asks to wait 100000 seconds; run the same command after that"),
])  # fmt: skip
def test_a_hub_that_stalls(hub, monkeypatch, stalls, message):
    hub.add("models", "me/model", MODEL | {"model.safetensors": b"x" * 10_000})
    hub.stalls = stalls
    monkeypatch.setattr(hub_module, "PATIENCE", 0.6)
    start = time.monotonic()
    with pytest.raises(DataError, match=f"hf://me/model.*{message}"):
        local_model("hf://me/model")
    assert time.monotonic() - start < 10


def test_a_model_is_published(hub, tmp_path, monkeypatch):
    bert_tf.save(tiny.encoder(), tiny.tokenizer(), tmp_path / "published")
    model = bert_tf.load(tmp_path / "published")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no_token"))
    with pytest.raises(DataError, match="hf://me/new: publishing it failed .*may write: 'hf auth login', or HF_TOKEN"):
        model.push("me/new")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert model.push("me/new", license="mit") == f"{hub.url}/me/new"
    assert hub.created["visibility"] == "private"
    _, files = hub.repositories["models", "me/new"]["main"]
    assert files["README.md"].startswith(b"---\nlibrary_name: transformers\n") and b"# me/new\n" in files["README.md"]
    again = bert_tf.load("hf://me/new")
    for first, second in zip(model.encoder.variables, again.encoder.variables, strict=True):
        np.testing.assert_array_equal(first, second)
    assert main(["convert", str(tmp_path / "published"), "me/other", "--to", "hub", "--public"]) == 0
    assert hub.created["visibility"] == "public" and ("models", "me/other") in hub.repositories
    for address in ("datasets/me/new", "me", "me/new/folder"):
        with pytest.raises(DataError, match="give hf://owner/name"):
            model.push(address)
