"""Byte-pair and SentencePiece tokenizers on disk: ours, Hugging Face's, and what is refused."""

import dataclasses
import json
import shutil
import unicodedata

import pytest
from subword_oracle import NASTIER, byte_level_oracle, put_json
from subword_variants import JSON_VARIANTS, TEXT, byte_level, changed_byte_level, gpt1, stripped, unigram
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Whole
from wordpiece_oracle import random_texts, sample_sentences

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import ByteLevelBPETokenizer, load_tokenizer
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES

PAIR = ("E\u0301l of <mask>, 1,000,", "naïve [SEP] size")


@pytest.mark.parametrize("name", JSON_VARIANTS)
def test_tokenizer_json_computes_the_same(tmp_path, name):
    ours = JSON_VARIANTS[name]()
    ours.save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    # The class under which transformers runs tokenizer.json as it is and builds nothing by itself.
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(ours) and loaded.fingerprint == ours.fingerprint
    assert loaded.settings == ours.settings and loaded.layout == ours.layout
    assert loaded.special_ids == ours.special_ids and loaded.role_tokens == ours.role_tokens
    theirs = Whole.from_file(str(tmp_path / "tokenizer.json"))
    texts = [*NASTIER, *random_texts(100, seed=5), *sample_sentences()[:40], "", " ", "a\x00b\n\nc 1,000, 2004,", *PAIR]
    parts = [part.to_list() for part in ours.tokenize_with_offsets([text.encode() for text in texts])]
    for text, ids, starts, ends, whole in zip(texts, *parts, theirs.encode_batch(texts, add_special_tokens=False)):
        assert ids == whole.ids, text
        if getattr(ours, "add_prefix_space", False):
            continue  # there the blank that was put before a word is taken for one of the text
        is_plain = text.isascii() and text.isprintable() and "''" not in text
        plain = is_plain if ours.kind == "sentencepiece" else unicodedata.is_normalized("NFC", text)
        both = zip(starts, ends), whole.offsets
        found, expected = ([stripped(text, *place) for place in places] for places in both)
        for place, other, token in zip(found, expected, whole.tokens) if plain else ():
            assert place == other or token == "\u2581", text  # which has the first letter of its word there
    # The package marks what is special, and has the segments.
    assert set(ours.special_ids) == {i for i, token in theirs.get_added_tokens_decoder().items() if token.special}
    for second in (None, PAIR[1]):
        rows = [ours.tokenize([text]) for text in (PAIR[0], second) if text is not None]
        row, found = ours.pack(*rows, sequence_length=90, dynamic=True), theirs.encode(PAIR[0], second)
        assert row["token_ids"].numpy()[0].tolist() == found.ids
        assert row["segment_ids"].numpy()[0].tolist() == found.type_ids

    # Alone, as others may hand it on, it is the same tokenizer.
    for file in ("vocab.txt", "vocab.json", "merges.txt", "spiece.model"):
        (tmp_path / file).unlink(missing_ok=True)
    alone = load_tokenizer(tmp_path)
    of_file = dataclasses.replace(ours.layout, odd_to_longer=ours.kind != "byte")  # which has no other file
    assert alone.layout == of_file and alone.special_ids == ours.special_ids
    assert [alone.encode(text) for text in texts[-44:]] == [ours.encode(text) for text in texts[-44:]]


def test_a_folder_that_another_program_saved_again(tmp_path):
    """The files of `save` stay, and tokenizer.json has changed: it is what all others run."""
    for name in ("byte-level", "albert", "wordpiece", "plain"):
        ours = JSON_VARIANTS[name]()
        ours.save(tmp_path / name)
        file = tmp_path / name / "tokenizer.json"
        whole = Whole.from_file(str(file))
        whole.add_special_tokens(["<new>"])
        whole.save(str(file))
        loaded = load_tokenizer(tmp_path / name)
        assert loaded.vocabulary == [*ours.vocabulary, "<new>"]
        assert loaded.encode("a <new>") == [*ours.encode("a "), ours.vocabulary_size]


@pytest.mark.parametrize("name, roles, inputs", [
    ("byte-level", {"bos_token": "<s>", "eos_token": "</s>"}, False), ("t5", {"eos_token": "</s>"}, False),
    ("xlnet", {"bos_token": "<s>", "eos_token": "</s>"}, True), ("wordpiece", {}, True),
    ("albert", {}, True), ("gpt2", {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}, False),
])  # fmt: skip
def test_what_the_configuration_tells_transformers(tmp_path, name, roles, inputs):
    JSON_VARIANTS[name]().save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert {key: config[key] for key in ("bos_token", "eos_token") if key in config} == roles
    assert ("token_type_ids" in config["model_input_names"]) is inputs


def older(folder, tokenizer, **files):
    """A folder as Hugging Face wrote them before 2023: what was added lies in files of its own."""
    return put_json(put(folder, tokenizer, config={"tokenizer_class": "RobertaTokenizer"}), **files)


def test_files_of_older_folders(tmp_path):
    b = changed_byte_level(special_tokens=["<ent>"])
    size = b.vocabulary_size
    added = {"<new>": size + 1, "covid": size, "<mask>": b.mask_id}
    names = {"additional_special_tokens": ["<new>", "<ent>"], "mask_token": {"content": "<mask>", "lstrip": True}}
    loaded = load_tokenizer(older(tmp_path / "both", b, added_tokens=added, special_tokens_map=names))
    assert loaded.vocabulary == [*b.vocabulary, "covid", "<new>"]
    assert loaded.encode("of <mask>covid<new>") == [*b.encode("of <mask>"), size, size + 1]
    assert loaded.special_ids == (*b.special_ids, size + 1)
    loaded.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    assert again.fingerprint == loaded.fingerprint and again.special_ids == loaded.special_ids

    # Without the names <mask> is still RoBERTa's.
    loaded = load_tokenizer(older(tmp_path / "one", b, added_tokens=added))
    assert loaded.encode("of <mask>") == b.encode("of <mask>") and loaded.special_ids == byte_level().special_ids[:5]


@pytest.mark.parametrize("files, message", [
    ({"added_tokens": {"covid": 7}}, "gives 'covid' the id 7, which the vocabulary does not"),
    ({"added_tokens": {"covid": "7"}}, "added_tokens.json: the id of 'covid' must be an integer, but is '7'"),
    ({"special_tokens_map": {"mask_tokens": "<mask>"}}, "special_tokens_map.json: unknown key 'mask_tokens'; did"),
    ({"special_tokens_map": {"mask_token": "<unk>"}, "tokenizer_config": {"mask_token": "<mask>"}},
     "special_tokens_map.json says mask_token = '<unk>', but tokenizer_config.json says '<mask>'"),
    ({"added_tokens": {"<mask>": 9}, "tokenizer_config": {"added_tokens_decoder": {"4": {"content": "<mask>"}}}},
     "added_tokens.json gives '<mask>' the id 9, but tokenizer_config.json the id 4"),
], ids=str)  # fmt: skip
def test_refused_older_folders(tmp_path, files, message):
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(older(tmp_path / "here", byte_level(), **files))


def test_the_vocabulary_of_a_sentencepiece_model_cannot_grow(tmp_path):
    unigram("albert").save(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[MASK]": 4}))
    assert load_tokenizer(tmp_path).fingerprint == unigram("albert").fingerprint
    (tmp_path / "added_tokens.json").write_text(json.dumps({"covid": 500}))
    with pytest.raises(ConfigError, match="adds 'covid' to the vocabulary, which spiece.model lacks"):
        load_tokenizer(tmp_path)


def put(folder, tokenizer, names=("vocab.json", "merges.txt"), config=None):
    tokenizer.save(folder)
    for old, new in zip(("vocab.json", "merges.txt"), names):
        (folder / old).rename(folder / new)
    for file in ("tokenizer_config.json", "tokenizer.json"):
        (folder / file).unlink()
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_published_files_without_settings(tmp_path):
    b = byte_level()
    roberta = load_tokenizer(put(tmp_path / "roberta", b, config={"model_max_length": 512}))
    assert roberta.layout == b.layout and roberta.mask_id == b.mask_id
    assert roberta.encode("a <mask>") == b.encode("a <mask>")
    letters = [t for t in b.vocabulary if t not in b.special_tokens]
    own = ByteLevelBPETokenizer([*letters, "<|endoftext|>"], b.merges, role_tokens=GPT2_ROLES, layout="none")
    for name, tokenizer in (("gpt2", own), ("gpt1", gpt1())):
        folder = put(tmp_path / name, tokenizer, ("encoder.json", "vocab.bpe"))
        assert load_tokenizer(folder).fingerprint == tokenizer.fingerprint
    for family in ("albert", "xlnet", "t5"):
        path = tmp_path / f"{family}.model"
        path.write_bytes(unigram(family).model)
        assert load_tokenizer(path).fingerprint == unigram(family).fingerprint
    (tmp_path / "one").mkdir()
    shutil.copy(tmp_path / "xlnet.model", tmp_path / "one" / "other_name.model")
    assert load_tokenizer(tmp_path / "one").family == "xlnet"
    assert load_tokenizer(tmp_path / "albert.model", lowercase=False).lowercase is False


def whole_roberta(folder):
    """What Hugging Face's RobertaTokenizer saves: tokenizer.json with all of it."""
    b = byte_level()
    made = byte_level_oracle(b)
    made.post_processor = processors.RobertaProcessing(("</s>", b.sep_id), ("<s>", b.cls_id), True, False)
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    # It keeps keys that it does not know, as those of a folder of ours that it read.
    config = {"layout": "roberta", "normalization": None, "tokenizer_class": "RobertaTokenizer", "backend": "tokenizers", "add_prefix_space": False, "errors": "replace",
              "bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>", "trim_offsets": True}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_tokenizer_json_of_roberta(tmp_path):
    folder = whole_roberta(tmp_path / "roberta")
    loaded = load_tokenizer(folder)
    assert loaded.encode(TEXT) == byte_level().encode(TEXT)
    assert loaded.fingerprint == byte_level().fingerprint
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "RobertaTokenizer", "layout": "bert"}')
    with pytest.raises(ConfigError, match="layout is 'bert'; only 'roberta' is supported"):
        load_tokenizer(folder)


def whole_modern(folder, **changes):
    """A tokenizer.json as ModernBERT's, tokens added beyond the vocabulary and all."""
    b = byte_level()
    letters = [t for t in b.vocabulary if t not in b.special_tokens]
    made = Whole(models.BPE({t: i for i, t in enumerate(letters)}, list(b.merges)))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken("   ", normalized=True), AddedToken("  ", normalized=True)])
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", AddedToken("[MASK]", lstrip=True)])
    forms = "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    made.post_processor = processors.TemplateProcessing(*forms, [(t, made.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
    folder.mkdir()
    content = json.loads(made.to_str())
    for key, value in changes.items():
        parts = key.split("__")
        inner = content
        for part in parts[:-1]:
            inner = inner[part]
        inner[parts[-1]] = value
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder, made


def test_tokenizer_json_alone_as_modernberts(tmp_path):
    folder, made = whole_modern(tmp_path / "modern")
    loaded = load_tokenizer(folder)
    assert isinstance(loaded, ByteLevelBPETokenizer) and loaded.normalization == "NFC"
    for text in (TEXT, "a    b  c   [MASK] [CLS]", "e\u0301 \u212b", ""):
        assert loaded.encode(text) == made.encode(text, add_special_tokens=False).ids
    ids = loaded.pack(loaded.tokenize([TEXT]), loaded.tokenize(["of"]), sequence_length=90, dynamic=True)["token_ids"]
    assert ids.numpy()[0].tolist() == made.encode(TEXT, "of").ids
    assert loaded.special_ids == tuple(made.token_to_id(t) for t in ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"))
    ids = loaded.encode("a   b [SEP]")
    assert loaded.decode(ids, skip_special_tokens=True) == made.decode(ids) == "a   b "
    assert loaded.vocabulary[loaded.mask_id] == "[MASK]" and loaded.vocabulary_size == made.get_vocab_size()
    loaded.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == loaded.fingerprint


def test_added_tokens_that_tokenizer_json_lacks(tmp_path):
    folder, made = whole_modern(tmp_path / "modern")
    (folder / "added_tokens.json").write_text(json.dumps({"[MASK]": made.token_to_id("[MASK]")}))
    assert load_tokenizer(folder).vocabulary_size == made.get_vocab_size()
    (folder / "added_tokens.json").write_text(json.dumps({"covid": made.get_vocab_size()}))
    with pytest.raises(ConfigError, match="adds 'covid' to the vocabulary, which tokenizer.json lacks"):
        load_tokenizer(folder)


FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
TOKEN = {"id": 3, "content": "new", "special": True} | FLAGS
WORD_LEVEL = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}


@pytest.mark.parametrize("changes, message", [
    ({"model__dropout": 0.1}, r"model.dropout is 0.1; only None or 0.0 is supported"),
    ({"model__byte_fallback": True}, "model.byte_fallback is True"),
    ({"model__ignore_merges": True}, "model.ignore_merges is True"),
    ({"model": WORD_LEVEL, "added_tokens": []}, "model.type is 'WordLevel'; only 'WordPiece' or 'Unigram' or 'BPE'"),
    ({"normalizer": {"type": "NFKC"}}, "normalizer.type is 'NFKC'; only None or 'NFC'"),
    ({"pre_tokenizer": {"type": "Metaspace", "replacement": "_"}}, "pre_tokenizer.type is 'Metaspace'"),
    ({"pre_tokenizer__use_regex": False}, "pre_tokenizer.use_regex is False"),
    ({"post_processor__single": [{"Sequence": {"id": "A", "type_id": 0}}]}, "the template A and .* no known famil"),
    ({"added_tokens": [TOKEN]}, "gives 'new' the id 3"),
    ({"added_tokens": [TOKEN | {"single_word": True}]}, "single_word = true"),
], ids=str)  # fmt: skip
def test_refused_tokenizer_json(tmp_path, changes, message):
    folder, _ = whole_modern(tmp_path / "modern", **changes)
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(folder)


@pytest.mark.parametrize("config, message", [
    ({"add_prefix_spaces": True}, "unknown key 'add_prefix_spaces'; did you mean 'add_prefix_space'"),
    ({"add_prefix_space": 1}, "add_prefix_space must be true or false, but is 1"),
    ({"add_bos_token": True}, "add_bos_token is True; only False is supported"),
    ({"mask_token": {"content": "<mask>", "single_word": True}}, "mask_token has a token with single_word"),
    ({"mask_token": 3}, "mask_token must be a string or an object"),
    ({"added_tokens_decoder": {"5": {"content": "<mask>"}}}, "gives '<mask>' the id 5"),
    ({"added_tokens_decoder": {"x": {"content": "<mask>"}}}, "'x' is not an id"),
], ids=str)  # fmt: skip
def test_refused_settings(tmp_path, config, message):
    folder = put(tmp_path / "here", byte_level(), config={"tokenizer_class": "RobertaTokenizer", **config})
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(folder)


def test_a_byte_order_mark_in_merges_and_vocabulary(tmp_path):
    here = put(tmp_path / "here", byte_level())
    expected = load_tokenizer(here).fingerprint
    merges = (here / "merges.txt").read_text(encoding="utf-8")
    (here / "vocab.json").write_text((here / "vocab.json").read_text(encoding="utf-8"), encoding="utf-8-sig")
    for text in (merges, merges.removeprefix("#version: 0.2\n")):
        (here / "merges.txt").write_text(text, encoding="utf-8-sig")
        assert load_tokenizer(here).fingerprint == expected


def test_refused_files(tmp_path):
    here = put(tmp_path / "here", byte_level())
    for name, content, message in (
        ("merges.txt", "#version: 0.2\na b\nc\n", "merges.txt, line 3: 'c' is not a pair"),
        ("merges.txt", "#version: 0.2\nq q\nzz zz\n", "here: merge 1, 'q' and 'q': the vocabulary lacks 'qq'"),
        ("vocab.json", '{"\\u0120": 0, "b": 2}', "none with the id 1"),
        ("vocab.json", '{"\\u0120": 0, "b": 0}', "both have the id 0"),
    ):
        (here / name).write_text(content)
        with pytest.raises(DataError, match=message):
            load_tokenizer(here)
    with pytest.raises(DataError, match="no 'model'; where it is a bare vocabulary, .* pass the folder"):
        load_tokenizer(here / "vocab.json")
    with pytest.raises(ConfigError, match="lowercase=True: .* no such setting"):
        load_tokenizer(here, lowercase=True)
    (tmp_path / "bad.model").write_bytes(b"nothing")
    with pytest.raises(DataError, match="bad.model: this is not a SentencePiece model"):
        load_tokenizer(tmp_path / "bad.model")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "tokenizer_config.json").write_text('{"tokenizer_class": "AlbertTokenizer"}')
    with pytest.raises(DataError, match="said to be a AlbertTokenizer, but has neither spiece.model nor tokenizer"):
        load_tokenizer(empty)
    unigram("t5").save(tmp_path / "t5")
    config = json.loads((tmp_path / "t5" / "tokenizer_config.json").read_text()) | {"sep_token": "<pad>"}
    (tmp_path / "t5" / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="sep_token is '<pad>'; t5's is '</s>'"):
        load_tokenizer(tmp_path / "t5")
