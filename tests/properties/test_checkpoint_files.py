"""Configurations and tokenizers of Hugging Face directories, damaged: an answer or a UserError."""

import json
import shutil
from pathlib import Path

import pytest
from damage import answer_or_user_error, as_json, cases, damaged, damaged_bytes
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.checkpoints import open_checkpoint
from bert_tf.tokenizers import load_tokenizer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if (path / "config.json").exists())


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Name -> a copy of the fixture, whose files may be replaced one at a time."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in NAMES:
        shutil.copytree(FIXTURES / name, folder / name)
    return folder


def with_damage(copies, name, file, content, read):
    """Calls `read` on the directory while one of its files holds `content`."""
    whole = (FIXTURES / name / file).read_bytes()
    (copies / name / file).write_bytes(content)
    try:
        with answer_or_user_error():
            read(copies / name)
    finally:
        (copies / name / file).write_bytes(whole)


@cases(250)
@given(st.data())
def test_config_json(copies, data):
    name = data.draw(st.sampled_from(NAMES))
    whole = json.loads((FIXTURES / name / "config.json").read_text())
    content = as_json(data.draw(damaged(whole))).encode()
    with_damage(copies, name, "config.json", content, open_checkpoint)


@cases(250)
@given(st.data())
def test_files_of_tokenizers(copies, data):
    name = data.draw(st.sampled_from(NAMES))
    files = [
        f.name for f in (FIXTURES / name).iterdir() if "tok" in f.name or "vocab" in f.name or f.name == "merges.txt"
    ]
    file = data.draw(st.sampled_from(sorted(files)))
    whole = (FIXTURES / name / file).read_bytes()
    if file.endswith(".json") and data.draw(st.booleans()):
        content = as_json(data.draw(damaged(json.loads(whole)))).encode()
    else:
        content = data.draw(damaged_bytes(whole))
    with_damage(copies, name, file, content, load_tokenizer)


@cases(100)
@given(st.data())
def test_files_of_weights(copies, data):
    name = data.draw(st.sampled_from(NAMES))
    files = [f.name for f in (FIXTURES / name).iterdir() if "safetensors" in f.name]
    file = data.draw(st.sampled_from(sorted(files)))
    whole = (FIXTURES / name / file).read_bytes()
    if file.endswith(".json"):
        content = as_json(data.draw(damaged(json.loads(whole)))).encode()
    else:
        content = data.draw(damaged_bytes(whole[:4000])) + whole[4000:]
    with_damage(copies, name, file, content, lambda path: open_checkpoint(path).parts)
