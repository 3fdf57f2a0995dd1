"""What the original BERT's text cleaning does to each single character.

Hugging Face's `BertNormalizer` works on one character at a time: drop control characters, private
use and U+FFFD, turn white space into a space, put spaces round Chinese characters, decompose and
drop accents, lowercase. So it is a table from code point to string, and the table is read off
the `tokenizers` package itself: what it does to a character is what we do.

(Decomposition also sorts combining marks. Nearly all of them are dropped with the accents; for the
rest see `WordPieceTokenizer`.)
"""

import functools

import numpy as np
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

NUM_CODE_POINTS = 0x110000

# Where something can happen to a character: planes 0 to 3 and the tags. Planes 4 to 13 are
# unassigned and pass unchanged; 15 and 16 are private use and are dropped.
_TABLED = [c for c in (*range(0x40000), *range(0xE0000, 0xE1000)) if not 0xD800 <= c < 0xE000]
_PRIVATE_PLANES = (range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))

# Stands between the characters when many are cleaned in one call: it passes unchanged, no
# other character becomes it, and no mark combines with it as they do with a space.
_SEPARATOR = "q"


@functools.lru_cache(maxsize=8)
def cleaned_characters(lowercase, strip_accents, tokenize_chinese_chars):
    """The characters that cleaning changes.

    Returns:
        dict of one-character string -> string, possibly empty, possibly with spaces. Private use
        beyond the basic plane is left out: see `is_private`.
    """
    clean = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=tokenize_chinese_chars,
        strip_accents=strip_accents,
        lowercase=lowercase,
    ).normalize_str
    others = [chr(c) for c in _TABLED if c >= 0x80]
    results = clean(_SEPARATOR.join(others)).split(_SEPARATOR)
    if len(results) != len(others):
        raise AssertionError(f"a character cleans to '{_SEPARATOR}', which must separate them")
    table = {character: result for character, result in zip(others, results) if result != character}
    for character in map(chr, range(0x80)):
        if clean(character) != character:
            table[character] = clean(character)
    return table


@functools.lru_cache(maxsize=1)
def punctuation():
    """The characters that Hugging Face's `BertPreTokenizer` makes words of their own."""
    others = [chr(c) for c in _TABLED if c >= 0x80]
    pieces = BertPreTokenizer().pre_tokenize_str(_SEPARATOR.join(others))
    # q, then whatever joined it, is one piece; a punctuation character is a piece without q.
    found = {piece for piece, _ in pieces if len(piece) == 1 and piece != _SEPARATOR}
    return frozenset(found | {chr(c) for c in range(33, 127) if not chr(c).isalnum()})


def is_private(character):
    """Whether Unicode leaves the character to private use: cleaning drops it from every text."""
    code = ord(character)
    return 0xE000 <= code < 0xF900 or any(code in plane for plane in _PRIVATE_PLANES)


def private_code_points():
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
def operator_characters(lowercase, strip_accents, tokenize_chinese_chars):
    """The cleaning table, adjusted so that tensorflow-text splits words where Hugging Face does.

    A character that tensorflow-text alone would split off is written as a stand-in of private
    use (which no cleaned text contains), in the text and in the vocabulary alike; one that it
    would miss gets spaces round it.

    Returns:
        (table, stand_ins): dicts of one-character string -> string. `table` is for the text,
        `stand_ins` for the vocabulary.
    """
    table = dict(cleaned_characters(lowercase, strip_accents, tokenize_chinese_chars))
    stand_ins, missing = {}, map(chr, _private_supply())
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


def _private_supply():
    for plane in _PRIVATE_PLANES:
        yield from plane
