"""The `tokenizers` package as the oracle of byte-pair encodings, and corpora to train small ones."""

import functools
import itertools
import json

import numpy as np
import tokenizers
from tokenizers import AddedToken, models, normalizers, pre_tokenizers, processors
from wordpiece_oracle import NASTY, random_texts, sample_sentences

# Beside WordPiece's nasty strings: what GPT-2's pattern and special tokens make difficult.
NASTIER = [
    *NASTY,
    "'s't're've'm'll'd", "a's b'tx 're ''s '' s's's' 'S 'reX 'sS", "1's2'm½²x 'll", "a'", "'", "'s", "'l", "'l l", " 's", "!'s",
    "\n's", "\u00a0's \u00a0x  \u3000y", "x\u2003\u2003y '", "a  b   c \n d\n\ne \t f", "  lead", "trail  ", " ", "\n", "\t\t",
    "<mask>", "a <mask> b", "a  \t<mask>b", "<mask><mask>", "</s><s>x<pad>", "<unk>é<mask>", " \u3000<mask>", "<MASK> <mask", "<<s>>",
    "=====----====", "aaaa" * 200, "abab" * 99, "\ufeffabc", "a\x00b<mask>\x00", "👩‍👩‍👧<mask>👩", "the" * 60, "e\u0301 \u1112\u1161\u11ab \u212b",
    "  a", "   a", "    a", "a    ", "\u2028\u2029 a", "newest lowest widest",
]  # fmt: skip


@functools.lru_cache
def corpus():
    """Sentences to train on, the nasty ones among them so that their bytes get merges."""
    return [*sample_sentences()[:3000], *NASTIER * 3]


@functools.lru_cache
def texts():
    """What oracles are asked: the sample, the nasty strings, random ones."""
    return [*NASTIER, *random_texts(400, seed=3), *sample_sentences()[:500]]


def put_json(folder, **files):
    """The folder, with the content of each file `NAME.json`."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def special(tokenizer):
    return [
        AddedToken(t.content, lstrip=t.lstrip, rstrip=t.rstrip, normalized=t.normalized, special=t.special)
        for t in tokenizer.special_token_details
    ]


def byte_level_oracle(tokenizer):
    """Hugging Face's tokenizer with the vocabulary and merges of ours."""
    made = tokenizers.Tokenizer(models.BPE({t: i for i, t in enumerate(tokenizer.vocabulary)}, list(tokenizer.merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=tokenizer.add_prefix_space)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
    if tokenizer.normalization:
        made.normalizer = normalizers.NFC()
    made.add_special_tokens([t for t in special(tokenizer) if t.special])
    made.add_tokens([t for t in special(tokenizer) if not t.special])
    return made


def bpe_oracle(tokenizer):
    suffix = {"end_of_word_suffix": tokenizer.end_of_word} if tokenizer.end_of_word else {}
    unk = tokenizer.role_tokens["unk"]
    made = tokenizers.Tokenizer(
        models.BPE({t: i for i, t in enumerate(tokenizer.vocabulary)}, list(tokenizer.merges), unk_token=unk, **suffix)
    )
    if tokenizer.cleaning == "gpt1":
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    else:
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(special(tokenizer))
    return made


def naive_bpe(symbols, ranks):
    """Sennrich's loop on one word: joins the pair of lowest rank, the leftmost first, until none is left.

    Args:
        symbols: list of ids.
        ranks: dict of (left, right) -> (rank, result).
    """
    symbols = list(symbols)
    while True:
        found = [(ranks[pair][0], i) for i, pair in enumerate(itertools.pairwise(symbols)) if pair in ranks]
        if not found:
            return symbols
        _, i = min(found)
        symbols[i : i + 2] = [ranks[tuple(symbols[i : i + 2])][1]]


def random_words(count, alphabet, longest, seed):
    random = np.random.default_rng(seed)
    return [random.integers(0, alphabet, random.integers(1, longest)).tolist() for _ in range(count)]
