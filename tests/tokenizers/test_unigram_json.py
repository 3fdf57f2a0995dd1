"""tokenizer.json of ALBERT, XLNet and T5 without spiece.model, against the `tokenizers` package."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest
import tensorflow as tf
import tokenizers
from subword_oracle import NASTIER, put_json
from wordpiece_oracle import random_texts, sample_sentences

import bert_tf
from bert_tf.errors import ConfigError, DataError
from bert_tf.testing import check_tokenizer
from bert_tf.tokenizers import load_tokenizer

FIXTURES = Path(__file__).parents[1] / "fixtures"
# `tokenizers` looks its table up for groups of characters of less than 6 bytes only, SentencePiece for any.
PARTED = ["e\u0301 \u1112\u1161\u11ab \u212b"]
# White space at the end, of the kinds that the table makes a blank, drops, or leaves.
ENDS = ["end \x01\x7f", "end\x85 ", "\x85 ", "end\u200b \x0b", "\x0bend\x01"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """What tests/golden/unigram.py wrote: a folder a family, with spiece.model and tokenizer.json."""
    folder = tmp_path_factory.mktemp("unigram")
    with tarfile.open(FIXTURES / "tokenizers" / "unigram.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def content(originals, family, form="converter"):
    """tokenizer.json of the newest converter, or as other releases of transformers wrote it."""
    whole = json.loads((originals / family / "tokenizer.json").read_text(encoding="utf-8"))
    steps = whole["normalizer"]["normalizers"]
    if form == "words":  # of 2020, as the published checkpoints have it
        metaspace = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
        whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
        steps = [s for s in steps if s["type"] != "Strip" and "Regex" not in s.get("pattern", {})]
        whole["normalizer"] = {"type": "Sequence", "normalizers": steps} if len(steps) > 1 else steps[0]
        whole["added_tokens"] = [t for t in whole["added_tokens"] if t["special"]]
    if form == "blanks":  # of T5's between 2021 and 2023
        steps[1:] = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    if form == "accents":  # keep_accents = true
        whole["normalizer"]["normalizers"] = [s for s in steps if s["type"] not in ("NFKD", "StripAccents")]
    return whole


@pytest.mark.parametrize("family, form, pre_tokenization", [
    ("albert", "words", "words"), ("albert", "accents", "last_blank"), ("xlnet", "converter", "last_blank"),
    ("t5", "converter", "stripped"), ("t5", "blanks", "last_blank"),
])  # fmt: skip
def test_ids_are_those_of_tokenizers(originals, tmp_path, family, form, pre_tokenization):
    folder = put_json(tmp_path / "here", tokenizer=content(originals, family, form))
    ours, theirs = load_tokenizer(folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert (ours.family, ours.pre_tokenization) == (family, pre_tokenization)
    sample, is_exact = sample_sentences()[:300], family != "t5" and form != "accents"
    texts = [*NASTIER, *ENDS, *(random_texts(400, seed=3) if is_exact else []), *sample]
    expected = [theirs.encode(text, add_special_tokens=False) for text in texts]
    batch = tf.constant([text.encode() for text in texts])
    ids, starts, ends = (part.to_list() for part in ours.tokenize_with_offsets(batch))
    different = [text for text, found, truth in zip(texts, ids, expected) if found != truth.ids]
    assert different == ([] if is_exact else PARTED)
    assert ours.tokenize(batch).to_list() == ids
    # Places are theirs, the white space before a word left out; of blanks alone nothing is left.
    for i in range(len(texts) - len(sample), len(texts)):
        for token, s, e, (first, last) in zip(expected[i].tokens, starts[i], ends[i], expected[i].offsets):
            if token != "\u2581":
                assert texts[i][s:e] == texts[i][first:last].lstrip(), repr(texts[i])
            else:
                assert s == e
    assert ours.vocabulary == [theirs.id_to_token(i) for i in range(theirs.get_vocab_size())]
    # With the special tokens that each puts around a text, and around two.
    packed = ours.pack(ours.tokenize(["the law"]), ours.tokenize(["a war"]), sequence_length=40)
    pair = theirs.encode("the law", "a war")
    assert packed["token_ids"].numpy()[0, : len(pair.ids)].tolist() == pair.ids
    ours.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == ours.fingerprint


def test_where_both_files_are_tokenizer_json_is_read(originals, tmp_path):
    """As transformers 5 saves an ALBERT: it runs tokenizer.json, where what follows a hyphen begins a word."""
    shutil.copytree(originals / "albert", tmp_path / "both")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "both" / "tokenizer.json"))
    for config in ({"tokenizer_class": "AlbertTokenizer"}, {"tokenizer_class": "TokenizersBackend"}, {}):
        (tmp_path / "both" / "tokenizer_config.json").write_text(json.dumps(config))
        text = "fellow-citizens"
        assert load_tokenizer(tmp_path / "both").encode(text) == theirs.encode(text, add_special_tokens=False).ids
    (tmp_path / "both" / "tokenizer.json").unlink()
    assert load_tokenizer(tmp_path / "both").encode(text) != theirs.encode(text, add_special_tokens=False).ids


def test_beside_the_spiece_model(originals, tmp_path):
    for family in ("albert", "xlnet", "t5"):
        folder = tmp_path / f"{family} of the authors"
        folder.mkdir()
        shutil.copy(originals / family / "spiece.model", folder)
        model = load_tokenizer(folder)
        whole = load_tokenizer(put_json(tmp_path / family, tokenizer=content(originals, family, "words")))
        assert model.pre_tokenization == "authors" and whole.vocabulary == model.vocabulary
        assert whole.role_tokens == model.role_tokens and whole.layout_name == model.layout_name
        assert set(whole.special_ids) == set(model.special_ids)
        assert whole.fingerprint != model.fingerprint
        if family == "t5":  # the others' models cut at brackets and digits before commas first
            sample = tf.constant(sample_sentences()[:300])
            assert whole.tokenize(sample).to_list() == model.tokenize(sample).to_list()


def test_in_a_saved_graph_and_beside_weights(originals, tmp_path):
    folder = tmp_path / "albert"
    shutil.copytree(FIXTURES / "checkpoints" / "albert", folder)
    (folder / "spiece.model").unlink()
    whole = content(originals, "albert")
    whole["model"]["vocab"] = whole["model"]["vocab"][:40]
    put_json(folder, tokenizer=whole)
    tokenizer, theirs = bert_tf.load(folder).tokenizer, tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ("The (Senate) ", " [MASK]\tn\u00efve\u0085``so''", " "):
        assert tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    check_tokenizer(tokenizer, tmp_path)


def _change(whole, path, value):
    *parents, last = path
    for key in parents:
        whole = whole[key]
    if value is None:
        del whole[last]
    else:
        whole[last] = value


STEPS = ("normalizer", "normalizers")


@pytest.mark.parametrize("path, value, message", [
    (("model", "byte_fallback"), True, "model.byte_fallback is True"),
    (("model", "unk_id"), 0, "model.unk_id is 0, which is not '<unk>'"),
    (("model", "vocab", 7), ["a"], "cannot read it: invalid length 1, expected a tuple"),
    (("model", "vocab", 7), ["<pad>", 0.0], "model.vocab has '<pad>' twice; remove one"),
    ((*STEPS, 0, "content"), "'", 'where `` must become "'),
    ((*STEPS, 3), None, "one of NFKD and StripAccents"),
    ((*STEPS, 5, "precompiled_charsmap"), "AA=A", "precompiled_charsmap is not base64"),
    ((*STEPS, 5, "precompiled_charsmap"), "AAEAAAAA", "precompiled_charsmap is cut off"),
    ((*STEPS, 6), {"type": "NFC"}, r"\{'type': 'NFC'\}, which is not supported there"),
    ((*STEPS, 6), None, "joins several spaces into one"),
    (("pre_tokenizer", "prepend_scheme"), "first", "prepend_scheme is 'first'; only 'always'"),
    (("pre_tokenizer", "split"), False, "pre_tokenizer.split is False"),
    (("pre_tokenizer", "type"), "BertPreTokenizer", r"the types in pre_tokenizer is \('BertPreTokenizer',\)"),
    (("post_processor",), None, "post_processor is 'none'; only 'bert' is supported"),
    (("decoder",), {"type": "Fuse"}, "decoder.type is 'Fuse'"),
    (("added_tokens", 7, "normalized"), True, "'\"' with normalized = true"),
    (("added_tokens", 7, "id"), 8, "gives '\"' the id 8"),
], ids=str)  # fmt: skip
def test_refused(originals, tmp_path, path, value, message):
    whole = content(originals, "albert")
    _change(whole, path, value)
    with pytest.raises((ConfigError, DataError), match=message) as raised:
        load_tokenizer(put_json(tmp_path / "here", tokenizer=whole))
    assert "tokenizer.json" in str(raised.value)


def test_refused_where_tokenizer_config_says_otherwise(originals, tmp_path):
    whole = content(originals, "albert")
    for config, message in (
        ({"do_lower_case": False}, "do_lower_case is False; only True is supported"),
        ({"added_tokens_decoder": {"9": {"content": "[MASK]"}}}, r"'\[MASK\]' the id 9, which the vocabulary does not"),
        ({"mask_token": "<mask>"}, r"mask_token is '<mask>'; albert's is '\[MASK\]'"),
    ):
        with pytest.raises(ConfigError, match=message):
            config = {"tokenizer_class": "AlbertTokenizer", **config}
            load_tokenizer(put_json(tmp_path / "here", tokenizer=whole, tokenizer_config=config))
