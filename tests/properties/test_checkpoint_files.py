"""Configurations and tokenizers of Hugging Face directories, damaged: an answer or a UserError."""

import json
import re
import shutil
from pathlib import Path

import pytest
from damage import answer_or_user_error, cases, damaged_file
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bert_tf.checkpoints import open_source
from bert_tf.tokenizers import ByteTokenizer, WordPieceTokenizer, load_tokenizer, train_byte_level_bpe, train_unigram

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if (path / "config.json").exists())


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """A folder with a copy of each fixture, whose files may be replaced one at a time."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in NAMES:
        shutil.copytree(FIXTURES / name, folder / name)
    return folder


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def tokenizers(copies, tmp_path_factory):
    """Folders with the files of tokenizers: those of the checkpoints, and forms that these do not have."""
    top, words = tmp_path_factory.mktemp("tokenizers"), [*SPECIAL, "fair", "un", "##able", "<ent>"]
    WordPieceTokenizer(words, lowercase=False, special_tokens=["<ent>"], normalization="NFC").save(top / "wordpiece")
    WordPieceTokenizer(words, special_tokens=["<ent>"]).save(top / "old")
    names = {"mask_token": "[MASK]", "additional_special_tokens": ["<ent>", {"content": "[CLS]"}]}
    (top / "old" / "special_tokens_map.json").write_text(json.dumps(names))
    (top / "old" / "added_tokens.json").write_text('{"[MASK]": 4}')
    (top / "alone").mkdir()
    made = BertWordPieceTokenizer({word: i for i, word in enumerate(words)})
    made.add_special_tokens(SPECIAL)
    made.save(str(top / "alone" / "tokenizer.json"))
    train_byte_level_bpe(["some text of few words"] * 9, 275).save(top / "byte_level")
    for name in ("vocab.json", "merges.txt"):
        (top / "byte_level" / name).unlink()  # tokenizer.json is then read
    train_unigram(["some text of few words, 1999"] * 9, 40, "albert", character_coverage=1.0).save(top / "unigram")
    ByteTokenizer(2, special_tokens=["<ent>"]).save(top / "byte")
    return sorted([*top.iterdir(), *(copies / name for name in NAMES)])


def with_damage(data, path, read):
    """Calls `read` while the file at `path` is damaged."""
    whole = path.read_bytes()
    path.write_bytes(data.draw(damaged_file(path)))
    try:
        with answer_or_user_error():
            read()
    finally:
        path.write_bytes(whole)


@cases(150)
@given(st.data())
def test_config_json(copies, data):
    folder = copies / data.draw(st.sampled_from(NAMES))
    with_damage(data, folder / "config.json", lambda: open_source(folder))


@cases(150)
@given(st.data())
def test_files_of_tokenizers(tokenizers, data):
    folder = data.draw(st.sampled_from(tokenizers))
    files = [f for f in folder.iterdir() if re.search(r"tok|vocab|^merges\.txt$|^spiece\.model$", f.name)]
    with_damage(data, data.draw(st.sampled_from(sorted(files))), lambda: load_tokenizer(folder))


@cases(50)
@given(st.data())
def test_files_of_weights(copies, data):
    folder = copies / data.draw(st.sampled_from(NAMES))
    file = data.draw(st.sampled_from(sorted(folder.glob("*safetensors*"))))
    with_damage(data, file, lambda: open_source(folder).parts)


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """Folders of presets of KerasHub."""
    folder = tmp_path_factory.mktemp("presets")
    for name in ("bert_classifier", "roberta_masked_lm", "albert_masked_lm", "t5"):
        shutil.unpack_archive(FIXTURES / "keras_hub" / f"{name}.zip", folder / name)
    return sorted(folder.iterdir())


def read_preset(path):
    source = open_source(path)
    assert source.parts
    if source.task is not None:
        source.task.make(source.tokenizer)
    elif (path / "tokenizer.json").exists():
        assert source.tokenizer


@cases(100)
@given(st.data())
def test_files_of_presets(presets, data):
    folder = data.draw(st.sampled_from(presets))
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".npz"]
    with_damage(data, data.draw(st.sampled_from(sorted(files))), lambda: read_preset(folder))
