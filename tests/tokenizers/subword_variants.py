"""Byte-pair and SentencePiece tokenizers of every form, each trained once."""

import functools

from subword_oracle import corpus

from bert_tf.tokenizers import BPETokenizer, ByteLevelBPETokenizer, ByteTokenizer, SentencePieceTokenizer, SpecialToken
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES
from bert_tf.tokenizers.bpe.training import train_bpe, train_byte_level_bpe
from bert_tf.tokenizers.sentencepiece.training import train_unigram
from bert_tf.tokenizers.wordpiece.training import train_wordpiece
from bert_tf.tokenizers.wordpiece.whole_words import train_words

TEXT = "The Senate <mask> naïve [MASK]  café, <ent> in 1999, isn't it"


@functools.lru_cache
def byte_level():
    return train_byte_level_bpe(corpus()[:1500], 600, normalization=None, special_tokens=["<ent>"])


@functools.lru_cache
def plain():
    return train_bpe(corpus()[:1500], 700, limit_alphabet=100)


@functools.lru_cache
def unigram(family):
    return train_unigram(corpus()[:1500], 500, family, character_coverage=0.999)


def gpt2():
    b = byte_level()
    return ByteLevelBPETokenizer([*b.vocabulary, "<|endoftext|>"], b.merges, role_tokens=GPT2_ROLES, layout="none")


def gpt1():
    p = plain()
    return BPETokenizer([*p.vocabulary, "<unk>"], p.merges, "gpt1", role_tokens=GPT1_ROLES, layout="none")


def changed_byte_level(**settings):
    return ByteLevelBPETokenizer(byte_level().vocabulary, byte_level().merges, **settings)


def changed_unigram(family, **settings):
    return SentencePieceTokenizer(unigram(family).model, family, **settings)


FEW_ROLES = {"pad": "<pad>", "unk": "<unk>"}
VARIANTS = {
    "byte-level": byte_level,
    "byte-level, other settings": lambda: changed_byte_level(add_prefix_space=True, normalization="NFC"),
    "byte-level, other tokens": lambda: changed_byte_level(
        special_tokens=[SpecialToken(byte_level().vocabulary[-1], False, True, True)], layout="bert"
    ),
    "byte-level, text among its tokens": lambda: changed_byte_level(
        special_tokens=[SpecialToken(t, special=False) for t in byte_level().vocabulary[-2:]]
    ),
    "byte-level, few roles": lambda: changed_byte_level(role_tokens=FEW_ROLES, layout="none"),
    "byte-level, few roles, NFC": lambda: changed_byte_level(role_tokens=FEW_ROLES, layout="none", normalization="NFC"),
    "byte-level, no mask": lambda: changed_byte_level(role_tokens=FEW_ROLES | {"cls": "<s>", "sep": "</s>"}),
    "byte-level, xlnet's layout": lambda: changed_byte_level(layout="xlnet", add_prefix_space=True),
    "gpt2": gpt2,
    "gpt1": gpt1,
    "plain": plain,
    "plain, cleaned": lambda: BPETokenizer(plain().vocabulary, plain().merges, cleaning="gpt1"),
    "albert": lambda: unigram("albert"),
    "albert, other settings": lambda: changed_unigram("albert", lowercase=False, keep_accents=True),
    "xlnet": lambda: changed_unigram(
        "xlnet", split_digit_commas=False, special_tokens=[unigram("xlnet").vocabulary[40]]
    ),
    "t5": lambda: changed_unigram("t5", extra_ids=7),
}

JSON_VARIANTS = VARIANTS | {
    "wordpiece": lambda: train_wordpiece(corpus()[:1500], 700),
    "wordpiece, cased": lambda: train_wordpiece(corpus()[:1500], 700, lowercase=False, special_tokens=["<ent>"]),
    "wordpiece, accents": lambda: train_wordpiece(
        corpus()[:500], 700, strip_accents=False, compose=False, tokenize_chinese_chars=False
    ),
    "words": lambda: train_words(corpus()[:1500], 700),
    "byte": ByteTokenizer,
    "byte, other sentinels": lambda: ByteTokenizer(3, "extra_ids", ["<ent>"]),
}


def stripped(text, start, end):
    """Offsets without white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
