"""What the `tokenizers` package makes of each character before a unigram model sees it."""

import functools

from tokenizers import normalizers

from bert_tf.tokenizers.cleaning import white_space

# How a tokenizer.json cuts words, and what blanks at the end of a text are: nothing, or one more piece.
CONVENTIONS = ("authors", "words", "stripped", "last_blank")


@functools.lru_cache(maxsize=4)
def composed_characters(charsmap, lowercase, splits_words):
    """NFKD, no marks, lowercased, then SentencePiece's own table: dict of character -> str.

    Without accents hardly a character is left that looks at its neighbors, so that all is in one
    table. SentencePiece's own normalization, which would join the letters of Korean syllables
    that NFKD parts and `tokenizers` leaves apart, must not follow.

    Args:
        charsmap: bytes, the model's precompiled_charsmap, or b"".
        lowercase: bool.
        splits_words: whether all white space that is left parts words, and not blanks alone.
    """
    steps = [normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase()] * lowercase
    steps += [normalizers.Precompiled(charsmap)] if charsmap else []
    normalize = normalizers.Sequence(steps).normalize_str
    blanks = str.maketrans(dict.fromkeys(white_space(), " ")) if splits_words else {}
    table = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000))):
        result = normalize(character).translate(blanks)
        if result != character:
            table[character] = result
    return table


def lowercase_characters(lowercase):
    """Each character lowercased by itself: dict of character -> str."""
    return {c: c.lower() for c in map(chr, range(0x20000)) if lowercase and c.lower() != c}


@functools.lru_cache(maxsize=4)
def blank_characters(charsmap):
    """(blanks, dropped, kept): three str of what the table of a model does to white space and the like.

    Args:
        charsmap: bytes, the model's precompiled_charsmap, or b"".

    Returns:
        The characters whose last is a blank then; those that vanish; the white space that stays as it is.
    """
    normalize = normalizers.Precompiled(charsmap).normalize_str if charsmap else str
    after = {c: normalize(c) for c in map(chr, (*range(0x3001), 0xFEFF, 0xFFFD))}
    blanks = "".join(c for c, result in after.items() if result == " ")
    dropped = "".join(c for c, result in after.items() if not result)
    return blanks, dropped, "".join(sorted(c for c in white_space() if c != " " and after[c] == c))
