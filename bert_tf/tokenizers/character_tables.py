"""Tables of what each character becomes before a tokenizer's model sees the text, and why.

A table is a dict of one-character string -> string; characters that are not in it stay as they are.
`ops.character_map` writes a table as the model of a graph operation. What another implementation
does to characters is read off that implementation, not rewritten here.

| table | for | source |
|---|---|---|
| `cleaned_characters` | BERT, before words are split | `BertNormalizer` of the `tokenizers` package |
| `operator_characters` | WordPiece: the same for tensorflow-text's operator | `BertPreTokenizer`, ICU |
| `spaced_words` | training WordPiece, GPT-1: words are what spaces separate | both of the `tokenizers` package |
| `plain_characters` | BPE of other sources | Unicode's White_Space |
| `sentencepiece_characters` | ALBERT, XLNet, as their authors clean | `preprocess_text` of both |
| `composed_characters`, `lowercase_characters` | the same, as a tokenizer.json cleans | normalizers of `tokenizers` |
"""

import functools
import itertools
import unicodedata
from typing import Any

import numpy as np
from tokenizers import normalizers
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Whitespace

NUM_CODE_POINTS = 0x110000

# Where something can happen to a character: planes 0 to 3 and the tags. Planes 4 to 13 are
# unassigned and pass unchanged; 15 and 16 are private use.
_TABLED = [c for c in (*range(0x40000), *range(0xE0000, 0xE1000)) if not 0xD800 <= c < 0xE000]
_PRIVATE_PLANES = (range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
# What Unicode leaves to private use, as the inside of a class in Python's `re`: cleaning drops it from every text.
PRIVATE_USE = "".join(f"{chr(part[0])}-{chr(part[-1])}" for part in (range(0xE000, 0xF900), *_PRIVATE_PLANES))

# Put between the characters when many are cleaned in one call: it passes unchanged, no
# other character becomes it, and no mark combines with it as they do with a space.
_SEPARATOR = "q"


@functools.lru_cache(maxsize=8)
def cleaned_characters(lowercase: bool, strip_accents: bool, tokenize_chinese_chars: bool) -> Any:
    """The original BERT's cleaning, which Hugging Face's `BertNormalizer` does one character at a time.

    Control characters, private use and U+FFFD are dropped, white space becomes a space, Chinese characters are put
    between spaces, accents are decomposed and dropped, letters lowercased. (Decomposition also sorts combining marks.
    Nearly all of them are dropped with the accents; for the rest see `WordPieceTokenizer`.) Private use beyond the
    basic plane is not in the table: see `PRIVATE_USE`.
    """
    clean = BertNormalizer(
        clean_text=True, handle_chinese_chars=tokenize_chinese_chars, strip_accents=strip_accents, lowercase=lowercase
    ).normalize_str
    not_ascii = [chr(c) for c in _TABLED if c >= 0x80]
    results = clean(_SEPARATOR.join(not_ascii)).split(_SEPARATOR)
    if len(results) != len(not_ascii):
        raise AssertionError(f"a character cleans to '{_SEPARATOR}', which must separate them")
    table = {character: result for character, result in zip(not_ascii, results) if result != character}
    for character in map(chr, range(0x80)):
        if clean(character) != character:
            table[character] = clean(character)
    return table


@functools.lru_cache(maxsize=1)
def punctuation() -> frozenset[str]:
    """The characters that Hugging Face's `BertPreTokenizer` makes words of their own."""
    not_ascii = [chr(c) for c in _TABLED if c >= 0x80]
    pieces = BertPreTokenizer().pre_tokenize_str(_SEPARATOR.join(not_ascii))
    # q, then whatever joined it, is one piece; a punctuation character is a piece without q.
    marks = {piece for piece, _ in pieces if len(piece) == 1 and piece != _SEPARATOR}
    return frozenset(marks | {chr(c) for c in range(33, 127) if not chr(c).isalnum()})


@functools.lru_cache(maxsize=8)
def spaced_words(lowercase: bool = True, strip_accents: bool = True, tokenize_chinese_chars: bool = True) -> Any:
    """BERT's cleaning, with a space on either side of each punctuation mark: words are what spaces separate.

    With all three settings it is what Hugging Face's OpenAIGPTTokenizer does. (GPT-1's authors cleaned
    with ftfy and split with spaCy, which no graph can.)
    """
    spaced = str.maketrans({c: f" {c} " for c in punctuation()})
    table = {c: c.translate(spaced) for c in punctuation()}
    for character, result in cleaned_characters(lowercase, strip_accents, tokenize_chinese_chars).items():
        table[character] = result.translate(spaced)
    return table


def white_space() -> frozenset[str]:
    """The characters that Unicode calls White_Space."""
    return frozenset(c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f")


@functools.lru_cache(maxsize=1)
def plain_characters() -> Any:
    """White space becomes a space; all else stays."""
    return dict.fromkeys(white_space(), " ")


def ranges_of(characters: Any) -> str:
    """Characters as the inside of a class in a regular expression, of RE2 and of `tokenizers`.

    Example:
        ranges_of("abcx")  # '\\x{61}-\\x{63}\\x{78}-\\x{78}'
    """
    codes = sorted(map(ord, characters))
    begins = [code for before, code in zip([None, *codes], codes) if before != code - 1]
    ends = [code for code, after in zip(codes, [*codes[1:], None]) if after != code + 1]
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in zip(begins, ends))


@functools.lru_cache(maxsize=1)
def word_characters() -> Any:
    r"""The characters that `\w` of the `tokenizers` package's `Whitespace` means, as a list."""
    not_space = [chr(c) for c in _TABLED if not chr(c).isspace()]
    pieces = Whitespace().pre_tokenize_str(" ".join(f"{_SEPARATOR}{c}" for c in not_space))
    # Beside a letter such a character is of its word, and another one a word of its own.
    return [piece[1] for piece, _ in pieces if len(piece) == 2 and piece[0] == _SEPARATOR]


def private_code_points() -> Any:
    """bool [0x110000]: True at private use beyond the basic plane."""
    result = np.zeros(NUM_CODE_POINTS, bool)
    for plane in _PRIVATE_PLANES:
        result[plane.start : plane.stop] = True
    return result


# tensorflow-text splits words where its ICU library sees punctuation, and always at Chinese
# characters. `BertPreTokenizer` has an older Unicode table and leaves Chinese to the cleaning.
# First and last code point of what only tensorflow-text 2.20 splits off:
_ICU_ONLY_PUNCTUATION = (
    (0x61D, 0x61D), (0x9FD, 0x9FD), (0xA76, 0xA76), (0xC77, 0xC77), (0xC84, 0xC84),
    (0x1B4E, 0x1B4F), (0x1B7D, 0x1B7F), (0x2E43, 0x2E4F), (0x2E52, 0x2E5D), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x10D6E, 0x10D6E), (0x10EAD, 0x10EAD),
    (0x10F55, 0x10F59), (0x10F86, 0x10F89), (0x113D4, 0x113D5), (0x113D7, 0x113D8),
    (0x1144B, 0x1144F), (0x1145A, 0x1145B), (0x1145D, 0x1145D), (0x11660, 0x1166C),
    (0x116B9, 0x116B9), (0x1183B, 0x1183B), (0x11944, 0x11946), (0x119E2, 0x119E2),
    (0x11A3F, 0x11A46), (0x11A9A, 0x11A9C), (0x11A9E, 0x11AA2), (0x11B00, 0x11B09),
    (0x11BE1, 0x11BE1), (0x11C41, 0x11C45), (0x11C70, 0x11C71), (0x11EF7, 0x11EF8),
    (0x11F43, 0x11F4F), (0x11FFF, 0x11FFF), (0x12FF1, 0x12FF2), (0x16D6D, 0x16D6F),
    (0x16E97, 0x16E9A), (0x16FE2, 0x16FE2), (0x1E5FF, 0x1E5FF), (0x1E95E, 0x1E95F),
    (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
# ... and what only BertPreTokenizer splits off:
_ICU_MISSED_PUNCTUATION = "\u166d\U000111c9"


@functools.lru_cache(maxsize=8)
def operator_characters(lowercase: bool, strip_accents: bool, tokenize_chinese_chars: bool) -> Any:
    """The cleaning table, adjusted so that tensorflow-text splits words where Hugging Face does.

    A character that tensorflow-text alone would split off is written as a stand-in of private use (which no cleaned
    text contains), in the text and in the vocabulary alike; one that it would miss gets spaces around it.

    Returns:
        (table, stand_ins): dicts of one-character string -> string, for the text and for the vocabulary.
    """
    table = dict(cleaned_characters(lowercase, strip_accents, tokenize_chinese_chars))
    stand_ins, missing = {}, map(chr, itertools.chain(*_PRIVATE_PLANES))
    for first, last in _ICU_ONLY_PUNCTUATION:
        for character in map(chr, range(first, last + 1)):
            if table.get(character) == f" {character} ":
                del table[character]  # both split it off: the spaces are not needed
            else:
                stand_ins[character] = next(missing)
    spaced = {c: f" {c} " for c in _ICU_MISSED_PUNCTUATION}
    replace = str.maketrans(stand_ins | spaced)
    for character, result in table.items():
        table[character] = result.translate(replace)
    for character, result in (stand_ins | spaced).items():
        table.setdefault(character, result)
    return table, stand_ins


def white_space_of_python() -> list[str]:
    """The characters at which `str.split` of Python separates words, as a list."""
    return [character for character in map(chr, range(0x3001)) if character.isspace()]


def combining_characters() -> list[str]:
    """The characters that Unicode calls combining, as a list: accents and other marks."""
    return [character for character in map(chr, _TABLED) if unicodedata.combining(character)]


@functools.lru_cache(maxsize=4)
def sentencepiece_characters(lowercase: bool, keep_accents: bool) -> Any:
    """What ALBERT's and XLNet's authors do to the text before SentencePiece sees it.

    White space of Python's `str.split` becomes a space; without `keep_accents` characters are decomposed (NFKD) and
    combining ones dropped; with `lowercase` they are lowercased, each by itself: a capital sigma at the end of a word
    becomes σ, where Python's `lower` has ς.

    Source: preprocess_text of google-research/albert tokenization.py and zihangdai/xlnet prepro_utils.py.
    """

    def clean(character):
        result = " " if character.isspace() else character
        if not keep_accents:
            result = "".join(c for c in unicodedata.normalize("NFKD", result) if not unicodedata.combining(c))
        return "".join(c.lower() for c in result) if lowercase else result

    return _changes(clean)


@functools.lru_cache(maxsize=4)
def composed_characters(charsmap: bytes, lowercase: bool, splits_words: bool) -> Any:
    """What a tokenizer.json of ALBERT or XLNet does: NFKD, no marks, lowercase, then SentencePiece's own table.

    Once accents are gone hardly a character depends on its neighbors, so all steps fit in one table. SentencePiece must
    then not normalize again: it would join the letters of Korean syllables, which NFKD separates and the `tokenizers`
    package leaves apart.

    Args:
        charsmap: bytes, the model's precompiled_charsmap, or b"".
        lowercase: bool.
        splits_words: whether all white space that is left separates words, and not the space alone.
    """
    steps = [normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase()] * lowercase
    steps += [normalizers.Precompiled(charsmap)] if charsmap else []
    normalize = normalizers.Sequence(steps).normalize_str
    spaces = str.maketrans(plain_characters() if splits_words else {})
    return _changes(lambda character: normalize(character).translate(spaces))


def lowercase_characters(lowercase: bool) -> Any:
    """Each character lowercased by itself, where `lowercase` is set; accents stay."""
    return _changes(str.lower) if lowercase else {}


def _changes(function):
    """The table of a function of one character."""
    results = ((c, function(c)) for c in map(chr, _TABLED))
    return {character: result for character, result in results if result != character}
