"""Tokenizer files of strangers: whatever stands in them, the answer is a tokenizer or a sentence."""

import copy
import json
import random
import shutil

import pytest
from tokenizers import BertWordPieceTokenizer

from bert_tf.errors import UserError
from bert_tf.tokenizers import (
    ByteLevelBPETokenizer,
    ByteTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
    train_byte_level_bpe,
    train_unigram,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "fair", "un", "##able", "<ent>"]
VALUES = [
    None, True, 0, -1, 2.5, 1e39, 10**12, "", "x", "\ud800", "a\x00b", [], [1], ["a"], {}, {"a": 1}, [[]],
    {"content": 3}, {"type": "Sequence"}, ["[CLS]", True], "9" * 5000,
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("tokenizers")
    WordPieceTokenizer(WORDS, lowercase=False, special_tokens=["<ent>"], normalization="NFC").save(top / "wordpiece")
    old = top / "old"
    WordPieceTokenizer(WORDS, special_tokens=["<ent>"]).save(old)
    names = {"mask_token": "[MASK]", "additional_special_tokens": ["<ent>", {"content": "[CLS]"}]}
    (old / "special_tokens_map.json").write_text(json.dumps(names))
    (old / "added_tokens.json").write_text('{"[MASK]": 4}')
    (top / "alone").mkdir()
    made = BertWordPieceTokenizer({w: i for i, w in enumerate(WORDS)})
    made.add_special_tokens(SPECIAL)
    made.save(str(top / "alone" / "tokenizer.json"))
    trained = train_byte_level_bpe(["some text of few words"] * 9, 275)
    trained.save(top / "byte_level")
    for name in ("vocab.json", "merges.txt"):
        (top / "byte_level" / name).unlink()  # tokenizer.json is then read
    ByteLevelBPETokenizer(trained.vocabulary, trained.merges).save(top / "roberta")
    train_unigram(["some text of few words, 1999"] * 9, 40, "albert", character_coverage=1.0).save(top / "unigram")
    ByteTokenizer(2, special_tokens=["<ent>"]).save(top / "byte")
    for folder in top.iterdir():
        load_tokenizer(folder)
    return sorted(top.iterdir())


def places(value, path=()):
    """The keys and indices that lead to each value within a JSON value, its own () first."""
    yield path
    if isinstance(value, dict):
        for key in [*value][:40]:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 6)):
            yield from places(value[index], (*path, index))


def changed(value, path, draw):
    """`value` with what stands at `path` replaced or left out."""
    if not path:
        return draw.choice(VALUES)
    value = parent = copy.deepcopy(value)
    for key in path[:-1]:
        parent = parent[key]
    if draw.random() < 0.25:
        del parent[path[-1]]
    else:
        parent[path[-1]] = draw.choice(VALUES)
    return value


def outcome(folder):
    try:
        load_tokenizer(folder).fingerprint
    except UserError as error:
        assert str(error)
        return "refused"
    return "loaded"


@pytest.mark.parametrize("seed", range(3))
def test_every_json_value_replaced(folders, tmp_path, seed):
    draw, seen = random.Random(seed), set()
    for folder in folders:
        for file in sorted(folder.glob("*.json")):
            original = json.loads(file.read_text())
            paths = list(places(original))
            for number, path in enumerate(draw.sample(paths, min(len(paths), 12))):
                here = tmp_path / f"{folder.name}-{file.name}-{number}"
                shutil.copytree(folder, here)
                (here / file.name).write_text(json.dumps(changed(original, path, draw)))
                seen.add(outcome(here))
    assert seen == {"loaded", "refused"}


@pytest.mark.parametrize("seed", range(3))
def test_every_file_cut_or_damaged(folders, tmp_path, seed):
    draw, seen = random.Random(seed), set()
    for folder in folders:
        for file in sorted(folder.iterdir()):
            for number in range(4):
                here = tmp_path / f"{folder.name}-{file.name}-{number}"
                shutil.copytree(folder, here)
                data = bytearray(file.read_bytes())
                if number % 2:
                    del data[draw.randrange(len(data)) :]
                else:
                    for _ in range(3):
                        data[draw.randrange(len(data))] = draw.randrange(256)
                (here / file.name).write_bytes(data)
                seen.add(outcome(here))
    assert "refused" in seen


def test_half_a_surrogate_pair_is_no_token():
    with pytest.raises(UserError, match="id 5 of the vocabulary.* half of a surrogate pair"):
        WordPieceTokenizer([*SPECIAL, "a\ud800"])
