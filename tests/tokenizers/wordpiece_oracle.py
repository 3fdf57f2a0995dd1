"""The `tokenizers` package as the oracle, and texts that tell implementations apart."""

import functools
import gzip
import json
from pathlib import Path

import numpy as np
from tokenizers import BertWordPieceTokenizer

import bert_tf
from bert_tf.tokenizers import WordPieceTokenizer

FIXTURES = Path(__file__).parent.parent / "fixtures" / "tokenizers"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Characters of many scripts, and of the corners of Unicode where implementations part.
POOLS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "accents": "àÉîÕüçÑśŽßẞıİǅﬁﬀøÅůﬃĳ",
    "marks": "\u0300\u0301\u0308\u0323\u20dd\u0345\u0483",
    "space": " \t\n\r\u00a0\u2003\u2028\u3000\u0085\u1680",
    "punctuation": "!#$&'()*+,-./:;<=>?@[]^_`{|}~—…“”¿«»·、。「」؟।᙭៚⹃",
    "control": "\x00\x01\x1f\x7f\x9f\u200b\u200d\ufeff\ufffd\u00ad\u2060\ue000\ue004\uf8ff\U000f0000\U0010fffd",
    "greek, cyrillic": "αΣςΆϊΩЙйЁщҐϴ",
    "hangul": "한국어의학가힣ᄒ\u1161\u11ab",
    "chinese, japanese": "中文漢字㐀𠀀豈龥ひらがなカタ\u3099",
    "indic, thai": "नमस्तेदुकिกขสวัดี்ങ്ང\u0f71",
    "arabic, hebrew": "مرحباאָבּ\u064b",
    "emoji": "👩👧🏽\ufe0f🇫🇷❤☃1\u20e3",
    "unassigned, rare": "\u0378\U00040000\U000e0041\U0001d54a\U0001e900\U00010400ႠᏣⴀꙀ\U0002b820\u061d",
}

NASTY = [
    "", " ", " \t\n\u00a0\u3000", "a", "Ünïcödé ÀÉÎ", "e\u0301", "cafe\u0301s café", "\u0301a", "a \u0301 b",
    "q\u0323\u0307 q\u0307\u0323", "ﬁne ﬂat ﬃ", "Straße ẞ GROSSE", "İstanbul ISPARTA ılık", "Σίσυφος ΟΔΟΣ ς",
    "中文abc漢字", "日本語のテキスト", "カ\u3099", "한국어 텍스트", "하ᄂ\u1161", "สวัสดีครับ", "مرحبا بالعالم", "नमस्ते दुनिया।",
    "👩‍👩‍👧 family", "🏳️‍🌈🇫🇷1️⃣", "a\x00b\x01c\x7fd", "zero\u200bwidth\u200djoin\ufeff", "bad\ufffdchar", "a\u00a0b\u202fc",
    "soft\u00adhyphen", "line\u2028para\u2029graph", "\x85next", "don't—stop… “now”", "$5 + 3^2 = `x` ~ <y> |z|", "##ing # ## ###",
    "\ue000\ue001 private \uf8ff\U000f0000", "\ue004[MASK]\ue004", "\U00040000 unassigned \u0378", "𝕳𝖊𝖑𝖑𝖔 Ⓐ ㎏ ½ ²",
    "[MASK]", "[mask] [Mask]", "a[MASK]b", "[MASK][MASK][SEP]", "[[MASK]]", "[CLS] [UNK] [PAD]", " [MASK] ", "[MASK", "MASK]",
    "é[MASK]é 한[SEP]한", "[unused1] [unused]", "Ǆ ǅ ǆ", "Ω Å K", "x" * 99, "x" * 100, "x" * 101, "y" * 5000 + " ok", "ab" * 50,
    "ab" * 51, "end " + "a1" * 70, "un" * 45 + "able", "가" * 33, "가" * 34, "가" * 101, "é" * 100, "é" * 101, "e\u0301" * 100,
    "ж" * 100, "ж" * 101, "中" * 200, "𐐀" * 100, "𐐨" * 101, "x" * 50 + "-" + "x" * 51, "x" * 100 + "\u0301", "!" * 300, "᙭x𑇉y⹃z",
]  # fmt: skip


def oracle(vocabulary, **settings):
    """Hugging Face's tokenizer with the same vocabulary, special tokens as in BertTokenizerFast."""
    made = BertWordPieceTokenizer({token: i for i, token in enumerate(vocabulary)}, **settings)
    made.add_special_tokens(SPECIAL)
    return made


@functools.lru_cache
def original_vocabulary(name):
    with gzip.open(FIXTURES / f"{name}-vocab.txt.gz", "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


@functools.lru_cache
def character_vocabulary():
    """Every character of the pools, cleaned or not, as a piece of its own: nothing hides in [UNK]."""
    characters = {c for pool in POOLS.values() for c in pool}
    forms = set()
    for settings in ({"lowercase": True}, {"lowercase": True, "strip_accents": False}, {"lowercase": False}):
        cleaned = oracle(SPECIAL, **settings).normalize(" ".join(sorted(characters)))
        forms |= set(cleaned) | characters
    single = sorted(c for c in forms if not c.isspace())
    pairs = ["ab", "##ab", "##cd", "abc", "##국어", "##\u1161\u11ab"]
    return [*SPECIAL, *single, *(f"##{c}" for c in single), *pairs]


@functools.lru_cache
def sample_sentences():
    path = Path(bert_tf.__file__).parent / "samples" / "state_of_the_union.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [sentence for text in texts for sentence in text.replace("\n", " ").split(". ")]


@functools.lru_cache
def random_texts(count, seed):
    """Texts that mix scripts, special tokens and any code point at all."""
    random = np.random.default_rng(seed)
    pools = [list(pool) for pool in POOLS.values()]
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(random.integers(1, 12)):
            kind = random.integers(0, len(pools) + 2)
            if kind == len(pools):
                parts.append(SPECIAL[random.integers(0, 5)])
            elif kind == len(pools) + 1:
                code = int(random.integers(1, 0x110000))
                parts.append(chr(code) if not 0xD800 <= code < 0xE000 else " ")
            else:
                parts += list(random.choice(pools[kind], random.integers(1, 9)))
            if random.random() < 0.3:
                parts.append(" ")
        texts.append("".join(parts))
    return texts


def assert_equal_to_oracle(tokenizer, reference, texts, offsets=True):
    """Ids of both methods, and offsets, text by text; of bytes that are no UTF-8 those of what Python reads."""
    batch = [text if isinstance(text, bytes) else text.encode("utf-8") for text in texts]
    expected = reference.encode_batch([text.decode("utf-8", "replace") for text in batch], add_special_tokens=False)
    ids = tokenizer.tokenize(batch).to_list()
    with_offsets = [part.to_list() for part in tokenizer.tokenize_with_offsets(batch)]
    for text, truth, plain, offset_ids, starts, ends in zip(texts, expected, ids, *with_offsets):
        assert plain == truth.ids, repr(text)
        assert offset_ids == truth.ids, repr(text)
        assert not offsets or list(zip(starts, ends)) == truth.offsets, repr(text)


def make(vocabulary, **settings):
    """Ours and the oracle."""
    lowercase = settings.get("lowercase", True)
    names = {"tokenize_chinese_chars": "handle_chinese_chars"}
    theirs = {names.get(k, k): v for k, v in settings.items()} | {"lowercase": lowercase}
    return WordPieceTokenizer(vocabulary, **settings), oracle(vocabulary, **theirs)
