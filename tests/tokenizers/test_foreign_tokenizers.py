"""Settings and words in other people's tokenizer files: followed, harmless, or refused."""

import json
import shutil
import unicodedata

import pytest
from subword_oracle import NASTIER, corpus
from subword_variants import JSON_VARIANTS, TEXT, stripped
from tokenizers import AddedToken, models, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Whole
from wordpiece_oracle import random_texts, sample_sentences

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import BPETokenizer, load_tokenizer, train_bpe

HARMLESS = {
    "use_fast": False, "trust_remote_code": False, "max_seq_length": 128, "from_slow": True, "model_max_length": 512,
    "full_tokenizer_file": None, "padding": True, "truncation": True, "chat_template": None, "split_special_tokens": False,
    "add_bos_token": False, "return_token_type_ids": False,
}  # fmt: skip


@pytest.mark.parametrize("form", ["files", "tokenizer.json"])
@pytest.mark.parametrize("name", ["byte-level", "gpt2", "gpt1", "plain", "albert", "t5", "wordpiece", "byte"])
def test_keys_that_change_no_ids_are_harmless(tmp_path, caplog, name, form):
    """Arguments of transformers' functions, and keys that its classes of other kinds read."""
    ours = JSON_VARIANTS[name]()
    ours.save(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    config = json.loads(file.read_text())
    if form == "tokenizer.json":
        del config["tokenizer_json_sha256"]
    others = {"do_lower_case": False, "strip_accents": None, "keep_accents": False, "never_split": []}
    file.write_text(json.dumps(HARMLESS | {key: others[key] for key in others.keys() - config.keys()} | config))
    assert load_tokenizer(tmp_path).encode(TEXT) == ours.encode(TEXT)
    own = ("sentinels", "extra_ids")  # of a ByteTokenizer, whose tokenizer.json is byte-level BPE
    assert [message for message in caplog.messages if not any(key in message for key in own)] == []
    if ours.kind != "wordpiece":
        file.write_text(json.dumps({"tokenize_chinese_chars": True} | config))
        assert load_tokenizer(tmp_path).encode(TEXT) == ours.encode(TEXT)
        assert "tokenize_chinese_chars is True, which no tokenizer of this kind reads: ignored" in caplog.text
    file.write_text(json.dumps({"split_special_tokens": True} | config))
    with pytest.raises(ConfigError, match="split_special_tokens is True; only False is supported"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["wordpiece", "albert", "byte-level", "t5", "xlnet"])
def test_an_imported_tokenizer_cuts_pairs_as_its_tokenizer_json_does(tmp_path, name):
    """One made here cuts them as google-research/bert does: of an odd number the first text keeps one more."""
    ours = JSON_VARIANTS[name]()
    ours.save(tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    config = json.loads((tmp_path / "ours" / "tokenizer_config.json").read_text())
    del config["tokenizer_json_sha256"]
    (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(config))
    imported, whole = load_tokenizer(tmp_path / "theirs"), Whole.from_file(str(tmp_path / "ours" / "tokenizer.json"))
    imported.save(tmp_path / "saved")
    saved = load_tokenizer(tmp_path / "saved")
    length = 21 - ours.layout.special_tokens_per_pair % 2  # an odd number is left
    whole.enable_truncation(length)
    different = 0
    for sizes in ((10, 30), (30, 10), (30, 31), (31, 30), (30, 30), (4, 30), (30, 4), (3, 4)):
        texts, found = [" ".join(["the"] * size) for size in sizes], []
        for tokenizer in (imported, saved, ours):
            row = tokenizer.pack(*(tokenizer.tokenize([t]) for t in texts), sequence_length=length, dynamic=True)
            found.append([row[name].numpy()[0].tolist() for name in ("token_ids", "segment_ids")])
        expected = whole.encode(*texts)
        assert found[0] == found[1] == [expected.ids, expected.type_ids]
        different += found[2] != found[0]
    assert different


def test_segments_that_the_configuration_leaves_out(tmp_path):
    for name in ("wordpiece", "albert", "xlnet"):
        JSON_VARIANTS[name]().save(tmp_path / name)
        file = tmp_path / name / "tokenizer_config.json"
        config = json.loads(file.read_text())
        classes = {"albert": "AlbertTokenizer", "xlnet": "XLNetTokenizer", "wordpiece": "BertTokenizer"}
        as_saved_by_5 = {key: value for key, value in config.items() if key not in ("model_input_names", "kind")}
        as_saved_by_5 |= {"tokenizer_class": classes[name], "backend": "tokenizers"}
        cases = (
            (config, True),
            (config | {"model_input_names": ["input_ids", "attention_mask"]}, False),
            ({key: value for key, value in config.items() if key != "model_input_names"}, True),
            (as_saved_by_5, name == "wordpiece"),
        )
        for content, segments in cases:
            file.write_text(json.dumps(content))
            tokenizer = load_tokenizer(tmp_path / name)
            row = tokenizer.pack(tokenizer.tokenize(["the"]), tokenizer.tokenize(["law"]), sequence_length=20)
            assert row["segment_ids"].numpy().any() == segments
        tokenizer.save(tmp_path / "again")
        assert load_tokenizer(tmp_path / "again").layout == tokenizer.layout
        shutil.rmtree(tmp_path / "again")


@pytest.mark.parametrize("framed", [True, False])
def test_the_bpe_of_the_quicktour(tmp_path, framed):
    """https://huggingface.co/docs/tokenizers/quicktour: BPE of what `Whitespace` splits, without an end mark."""
    whole = Whole(models.BPE(unk_token="[UNK]"))
    whole.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    trainer = trainers.BpeTrainer(special_tokens=special, vocab_size=600, show_progress=False)
    whole.train_from_iterator([*corpus()[:1000], "-- ... 중문 naïve_x ²"] * 2, trainer)
    if framed:
        names = [(token, whole.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
        forms = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
        whole.post_processor = processors.TemplateProcessing(*forms, special_tokens=names)
    whole.save(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path / "tokenizer.json")
    assert isinstance(ours, BPETokenizer) and ours.layout_name == ("bert" if framed else "none")
    own = ["", "a\x00b --...c_d ²x", "[MASK]'s \x00\x00"]
    texts = [*NASTIER, *random_texts(200, seed=9), *sample_sentences()[:40], *own]
    expected = whole.encode_batch(texts, add_special_tokens=False)
    parts = [part.to_list() for part in ours.tokenize_with_offsets([text.encode() for text in texts])]
    for text, ids, starts, ends, theirs in zip(texts, *parts, expected):
        assert ids == theirs.ids == ours.encode(text), text
        assert list(zip(starts, ends)) == theirs.offsets, text
    ours.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").fingerprint == ours.fingerprint
    with pytest.raises(ConfigError, match="train with 'plain' or 'gpt1'"):
        train_bpe(["a text"], 30, cleaning="words")


ADDED = [
    AddedToken("COVID-19"), AddedToken("naïve"), AddedToken("law"), AddedToken("ﬁx", lstrip=True), AddedToken("中文"),
    AddedToken("Ωmega", normalized=False),
]  # fmt: skip


@pytest.mark.parametrize("name", ["wordpiece", "wordpiece, cased", "wordpiece, accents", "gpt1", "plain", "byte-level"])
def test_words_that_add_tokens_added(tmp_path, name):
    """`tokenizer.add_tokens([...])` of transformers: words that are looked for in the cleaned text, anywhere in it."""
    JSON_VARIANTS[name]().save(tmp_path)
    whole = Whole.from_file(str(tmp_path / "tokenizer.json"))
    whole.add_tokens(ADDED)
    whole.add_special_tokens([AddedToken("<Entity>", normalized=True, rstrip=True)])
    whole.save(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path)
    texts = [
        "covid-19 and COVID-19s", "a co vid-19 lawless outlaw LAW law", "Naïve naive NAI\u0308VE", "un ﬁx FIX it \t ﬁx", "中文字 中 文",
        "ωmega Ωmega Ωmegalaw", "<entity> x <Entity>  y", "", "law", "\u0301", *NASTIER, "[MASK]law", "law" * 40, "x" * 99 + "law",
    ]  # fmt: skip
    expected = whole.encode_batch(texts, add_special_tokens=False)
    parts = [part.to_list() for part in ours.tokenize_with_offsets([text.encode() for text in texts])]
    for text, ids, starts, ends, theirs in zip(texts, *parts, expected):
        assert ids == theirs.ids == ours.encode(text), text
        if unicodedata.is_normalized("NFC", text):
            found = [stripped(text, *place) for place in zip(starts, ends)]
            assert found == [stripped(text, *place) for place in theirs.offsets], text
    assert not {whole.token_to_id("law"), whole.token_to_id("COVID-19")} & set(ours.special_ids)
    ours.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    assert again.fingerprint == ours.fingerprint and [again.encode(text) for text in texts] == parts[0]
