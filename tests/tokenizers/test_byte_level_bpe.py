"""Byte-level BPE in graph ops against the `tokenizers` package: ids and offsets, on everything."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from subword_oracle import NASTIER, byte_level_oracle, corpus, texts
from wordpiece_oracle import assert_equal_to_oracle

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import ByteLevelBPETokenizer, SpecialToken, train_byte_level_bpe
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES
from bert_tf.tokenizers.bpe.gpt2_words import byte_alphabet


@pytest.fixture(scope="module")
def roberta():
    return train_byte_level_bpe(corpus(), 3000, normalization=None)


def variant(tokenizer, **settings):
    return ByteLevelBPETokenizer(tokenizer.vocabulary, tokenizer.merges, **settings)


def test_ids_and_offsets_are_the_oracles(roberta):
    assert_equal_to_oracle(roberta, byte_level_oracle(roberta), texts())


def test_a_blank_before_each_text(roberta):
    ours = variant(roberta, add_prefix_space=True)
    # The oracle's offsets count the blank that it put there itself as the text's.
    assert_equal_to_oracle(ours, byte_level_oracle(ours), texts(), offsets=False)
    ids, starts, ends = ours.tokenize_with_offsets(tf.constant("newest low<mask>er"))
    mask = ids.numpy().tolist().index(ours.mask_id)
    assert ids.numpy().tolist()[mask + 1 :] == roberta.encode(" er")
    assert (starts.numpy()[0], ends.numpy()[-1]) == (0, 18)
    assert ours.encode(" é") == ours.encode("é") == roberta.encode(" é") != roberta.encode("é")


def modern(tokenizer):
    """As ModernBERT's: NFC, tokens for blanks in a row that are found after it, BERT's frame."""
    added = ["  ", "   ", "é|", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]
    roles = {role: f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    settings = {"normalization": "NFC", "role_tokens": roles, "layout": "bert"}
    special = [SpecialToken(t, normalized=True) for t in added[:3]]
    return ByteLevelBPETokenizer([*tokenizer.vocabulary, *added], tokenizer.merges, special_tokens=special, **settings)


def test_normal_form_and_tokens_found_after_it(roberta):
    ours = modern(roberta)
    composed = ["e\u0301| é|", "a   \u1112\u1161\u11ab    b[MASK]  ", "\u212b  Å e\u0301e\u0301 q\u0323\u0307 x"]
    some = [*texts(), "  [MASK]  x", *composed]
    assert_equal_to_oracle(ours, byte_level_oracle(ours), some, offsets=False)
    # The oracle's offsets differ within composed characters, and where it trims the tokens of blanks.
    plain = [t for t in some if t.isascii() and "  " not in t]
    assert_equal_to_oracle(ours, byte_level_oracle(ours), plain)
    text = "ne\u0301e\u0301<<  e\u0301| [MASK]x"
    ids, starts, ends = (part.numpy() for part in ours.tokenize_with_offsets(tf.constant(text)))
    found = {ours.id_to_token(i): text[s:e] for i, s, e in zip(ids, starts, ends)}
    assert found["é|"] == "e\u0301|" and found["[MASK]"] == "[MASK]" and found["x"] == "x"
    sources = [unicodedata.normalize("NFC", text[s:e]).strip(" ") for s, e in zip(starts, ends)]
    assert sources == [ours.decode([i]).strip(" ") for i in ids]
    packed = ours.pack(ours.tokenize(["x"]), sequence_length=4)["token_ids"].numpy().tolist()
    assert packed == [[ours.cls_id, ours.encode("x")[0], ours.sep_id, ours.pad_id]]


def test_special_tokens(roberta):
    tokens = [roberta.id_to_token(i) for i in roberta.encode("of the <mask>of <mask")]
    assert tokens[:4] == ["of", "Ġthe", "<mask>", "of"]  # <mask> swallows the blank
    both = variant(roberta, special_tokens=[SpecialToken("<mask>", lstrip=True, rstrip=True), "of", "ow"])
    assert_equal_to_oracle(both, byte_level_oracle(both), ["a of the  <mask>  b", "ofow low <mask>ow", *NASTIER])
    assert roberta.special_ids == (0, 1, 2, 3, 4)
    assert (roberta.cls_id, roberta.pad_id, roberta.sep_id, roberta.unk_id, roberta.mask_id) == (0, 1, 2, 3, 4)


def test_added_tokens_that_are_text(roberta):
    blanks = SpecialToken("   ", normalized=True, special=False)
    added = [blanks, SpecialToken("é|", special=False), SpecialToken("<ent>")]
    ours = ByteLevelBPETokenizer([*roberta.vocabulary, "   ", "é|", "<ent>"], roberta.merges, special_tokens=added)
    assert_equal_to_oracle(ours, byte_level_oracle(ours), ["a    b<ent>é|", *NASTIER], offsets=False)
    first = roberta.vocabulary_size
    assert ours.special_ids == (0, 1, 2, 3, 4, first + 2)
    assert {first, first + 1} < set(ours.random_ids.tolist())
    ids = ours.encode("é|of   the<ent>")
    assert {first, first + 1, first + 2} < set(ids)
    assert ours.decode(ids) == "é|of   the<ent>" and ours.decode(ids, skip_special_tokens=True) == "é|of   the"
    # The token of a role stands for no text, whatever its flag.
    no_text = variant(roberta, special_tokens=[SpecialToken("<s>", normalized=True, special=False)])
    assert no_text.special_ids == (0, 1, 2, 3, 4)


def test_bytes_that_are_no_utf8_act_as_pythons_replacement_characters(roberta):
    broken = b"ab\xffcd|caf\xc3|\xe4\xb8|\xe4\xb8fair|\xed\xa0\x80fair|\xf0\x9f\x98 fair|\xff<mask>\xfe".split(b"|")
    assert_equal_to_oracle(roberta, byte_level_oracle(roberta), broken)
    assert roberta.encode("a\ud800b") == roberta.encode("a\ufffd\ufffd\ufffdb")


def test_decode_gives_the_text_back(roberta):
    for text in NASTIER:
        if "<mask>" not in text:
            assert roberta.decode(roberta.encode(text)) == text
    ids = [0, *roberta.encode("é 👩 the"), 2]
    assert roberta.decode(ids) == "<s>é 👩 the</s>"
    assert roberta.decode(ids, skip_special_tokens=True) == "é 👩 the"
    assert roberta.decode([roberta.token_to_id(byte_alphabet()[0xC3])]) == "\ufffd"


def test_readable_tokens_are_characters():
    tokenizer = train_byte_level_bpe(["가장 좋은 영화다\n"] * 3, 400)
    shown = [tokenizer.readable(i) for i in tokenizer.encode("가장 좋은 영화다\n")]
    assert shown == ["가장", "Ġ좋은", "Ġ영화다", "Ċ"]
    assert tokenizer.readable(0) == "<s>" and tokenizer.readable(tokenizer.token_to_id("z")) == "z"
    part = tokenizer.token_to_id(byte_alphabet()[0xEA])
    assert tokenizer.readable(part) == tokenizer.id_to_token(part)  # of a character


def test_tables_of_the_vocabulary(roberta):
    tokens = np.array(roberta.vocabulary)
    assert roberta.is_continuation.dtype == bool and not roberta.is_continuation[:5].any()
    starts = [t for t in tokens[~roberta.is_continuation] if t not in roberta.special_tokens]
    assert starts == [t for t in tokens if t.startswith("Ġ")]
    assert roberta.random_ids.tolist() == list(range(5, roberta.vocabulary_size))
    unused = ByteLevelBPETokenizer([*roberta.vocabulary, "madeupword0001"], roberta.merges)
    assert unused.vocabulary_size - 1 not in unused.random_ids
    gpt2 = ByteLevelBPETokenizer([*byte_alphabet(), "<|endoftext|>"], [], role_tokens=GPT2_ROLES, layout="none")
    assert (gpt2.pad_id, gpt2.cls_id, gpt2.mask_id) == (256, 256, None)
    assert gpt2.encode("a<|endoftext|>") == [ord("a"), 256]


def test_fingerprint_tells_apart_what_gives_other_ids(roberta):
    changes = [{"add_prefix_space": True}, {"normalization": "NFC"}, {"layout": "bert"}, {"special_tokens": ["of"]}]
    made = [variant(roberta, **change) for change in [*changes, {"special_tokens": [SpecialToken("<mask>")]}, {}]]
    made += [ByteLevelBPETokenizer(roberta.vocabulary, [*roberta.merges[1::-1], *roberta.merges[2:]])]
    assert len({t.fingerprint for t in made}) == len(made)
    assert variant(roberta).fingerprint == roberta.fingerprint


def test_long_words_cost_no_memory_in_the_square(roberta):
    # One word of 200,000 letters beside 2,000 short ones: [words, longest] would be 400 MB.
    long = "ab" * 100_000
    ids = roberta.tokenize(tf.constant([long, *["the of"] * 2000]))
    assert ids[0].numpy().tolist() == byte_level_oracle(roberta).encode(long, add_special_tokens=False).ids
    assert ids[1:].to_list() == [roberta.encode("the of")] * 2000


def test_refused():
    letters = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_alphabet()]
    for vocabulary, merges, message in (
        (letters[1:], [], "lacks the special token '<s>'"),
        (letters[:-1], [], "lacks the byte 255, spelled 'ÿ'"),
        (letters, [("a", "b")], "merge 1, 'a' and 'b': the vocabulary lacks 'ab'"),
        ([*letters, "ab"], [("a", "b"), ("a", "b")], "merge 2 joins the same pair"),
    ):
        with pytest.raises(DataError, match=message):
            ByteLevelBPETokenizer(vocabulary, merges)
    for settings, message in (
        ({"normalization": "NFD"}, "normalization 'NFD'"),
        ({"role_tokens": {"unk": "<unk>"}}, "role 'pad' is missing"),
        ({"role_tokens": {"unk": "<unk>", "pad": "<pad>", "bos": "<s>"}}, "role 'bos' is unknown"),
    ):
        with pytest.raises(ConfigError, match=message):
            ByteLevelBPETokenizer(letters, [], **settings)
