"""ByT5's tokenizer against Hugging Face's ByT5Tokenizer (tests/golden/byt5.py), its files and its sentinels."""

import json
from pathlib import Path

import pytest
import tensorflow as tf
from subword_oracle import put_json

from bert_tf.cli.main import main
from bert_tf.errors import ConfigError
from bert_tf.tokenizers import ByteTokenizer, load_tokenizer
from tfrecords import DenoisingConfig, DenoisingCorruption

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "tokenizers" / "byt5.json").read_text(encoding="utf-8"))
NAMES = [f"<extra_id_{i}>" for i in range(125)]


@pytest.fixture(scope="module")
def byt5():
    return ByteTokenizer()


def test_texts_become_the_ids_of_hugging_face(byt5):
    texts = [row["text"] for row in GOLDEN["texts"]]
    expected = [row["ids"] for row in GOLDEN["texts"]]
    assert byt5.tokenize(tf.constant(texts)).to_list() == expected
    assert [byt5.decode(row["ids"]) for row in GOLDEN["texts"]] == [row["decoded"] for row in GOLDEN["texts"]]
    whole = [row for row in GOLDEN["texts"] if "sequence" in row]
    packed = byt5.pack(byt5.tokenize([row["text"] for row in whole]), sequence_length=160)
    rows = tf.ragged.boolean_mask(packed["token_ids"], packed["padding_mask"]).to_list()
    assert rows == [row["sequence"] for row in whole] and byt5.sep_id == 1


def test_ids_become_the_texts_of_hugging_face(byt5):
    rows = tf.ragged.constant([row["ids"] for row in GOLDEN["ids"]], tf.int32)
    for skip, key in ((False, "decoded"), (True, "text")):
        expected = [row[key] for row in GOLDEN["ids"]]
        assert [byt5.decode(row["ids"], skip_special_tokens=skip) for row in GOLDEN["ids"]] == expected
        assert [text.decode() for text in byt5.detokenize(rows, skip_special_tokens=skip).numpy()] == expected


def test_every_byte_has_the_offsets_of_its_character(byt5):
    ids, starts, ends = (part.to_list()[0] for part in byt5.tokenize_with_offsets(["a 한<extra_id_0>é"]))
    assert ids == [100, 35, 240, 152, 159, 259, 198, 172]
    assert starts == [0, 2, 2, 2, 2, 3, 15, 15]  # the space is empty, as in every tokenizer
    assert ends == [1, 2, 3, 3, 3, 15, 16, 16]


def test_the_vocabulary_is_that_of_the_checkpoints(byt5):
    assert byt5.vocabulary_size == 384  # vocab_size of google/byt5-*
    ids = {"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 100, "<0x00>": 3, "<0x20>": 35, "<0xFF>": 258}
    assert {token: byt5.token_to_id(token) for token in ids} == ids
    assert [byt5.token_to_id(name) for name in NAMES] == list(range(259, 384))
    # The paper's sentinels, as far as no text has them.
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    never = set(range(256)) - set(text.encode())
    assert byt5.sentinel_ids == [258, 257, 256, 255, 254, 253, 252, 251, 250, 249, 248]
    assert {i - 3 for i in byt5.sentinel_ids} | {0xC0, 0xC1} == never
    assert {i - 3 for i in byt5.random_ids.tolist()} == set(range(256)) - never
    assert ByteTokenizer(sentinels="extra_ids").sentinel_ids == list(range(259, 384))


def test_the_sentinels_are_too_few_for_long_texts(byt5):
    """How they are used: tests/tfrecords/test_denoising.py."""
    message = r"needs 28 sentinels for texts of 560 tokens, and the vocabulary has 11; .*byte_extra_ids"
    with pytest.raises(ConfigError, match=message):
        DenoisingCorruption(byt5, DenoisingConfig()).check_sentinels(560)
    DenoisingCorruption(byt5, DenoisingConfig(mean_span=20.0)).check_sentinels(560)
    DenoisingCorruption(ByteTokenizer(sentinels="extra_ids"), DenoisingConfig()).check_sentinels(560)


def test_folders_of_hugging_face(byt5, tmp_path):
    own = GOLDEN["own"]
    files = {Path(name).stem: content for name, content in own["files"].items()}
    loaded = load_tokenizer(put_json(tmp_path / "own", **files))
    assert loaded.encode(own["text"]) == own["ids"] and loaded.vocabulary_size == 263
    loaded.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").fingerprint == loaded.fingerprint
    # As google/byt5-small was published: flags of their own, and no class but in config.json.
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "__type": "AddedToken"}
    roles = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    published = {role: plain | {"content": token} for role, token in roles.items()}
    published |= {"extra_ids": 125, "additional_special_tokens": NAMES}
    config = {"tokenizer_class": "ByT5Tokenizer"}
    loaded = load_tokenizer(put_json(tmp_path / "published", config=config, tokenizer_config=published))
    assert loaded.vocabulary == byt5.vocabulary and loaded.sentinel_ids == byt5.sentinel_ids
    assert loaded.encode("a </s> b<extra_id_1>") == [100, 35, 1, 35, 101, 260]  # without the flags of new tokenizers
    alone = put_json(tmp_path / "alone", tokenizer_config=config)
    assert load_tokenizer(alone).fingerprint == byt5.fingerprint


@pytest.mark.parametrize("settings, message", [
    ({"eos_token": "<eos>"}, "special token '<eos>', which is not one of ByT5's and has no id"),
    ({"pad_token": "[PAD]"}, r"pad_token is '\[PAD\]'; ByT5's is '<pad>'"),
    ({"sentinels": "byte"}, "tokenizer_config.json: sentinels is 'byte'; did you mean 'bytes'"),
    ({"extra_ids": -1}, "extra_ids is -1"),
    ({"layout": "bert"}, "layout is 'bert'"),
    ({"added_tokens_decoder": {"300": {"content": "<x>"}}}, "gives '<x>' the id 300"),
])  # fmt: skip
def test_folders_that_are_no_byt5(settings, message, tmp_path):
    folder = put_json(tmp_path / "t", tokenizer_config={"tokenizer_class": "ByT5Tokenizer"} | settings)
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(folder)


def test_the_command_writes_it_without_a_corpus(byt5, tmp_path, capsys):
    assert main(["vocab", "--kind", "byte", "--output", str(tmp_path / "byt5")]) == 0
    assert capsys.readouterr().out == f"384 tokens in {tmp_path / 'byt5'}\n"
    assert sorted(f.name for f in (tmp_path / "byt5").iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    assert load_tokenizer(tmp_path / "byt5").fingerprint == byt5.fingerprint
    for wrong, message in (
        (["corpus.txt", "--kind", "byte"], "learns no vocabulary from text; remove the corpus corpus.txt"),
        (["--size", "300", "--kind", "byte"], "remove --size"),
        (["--text-field", "body", "--kind", "byte"], "remove --text-field"),
        (["--kind", "bpe"], "--kind bpe needs a corpus, files, folders or globs"),
        (["--kind", "byte", "--output", str(tmp_path / "byt5")], "holds a tokenizer; choose another folder"),
    ):
        assert main(["vocab", "--output", str(tmp_path / "other"), *wrong]) == 1
        assert message in capsys.readouterr().err
    assert main(["vocab", "--kind", "byte_extra_ids", "--output", str(tmp_path / "byt5"), "--overwrite"]) == 0
    assert load_tokenizer(tmp_path / "byt5").sentinel_ids[0] == 259
