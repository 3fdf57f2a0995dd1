"""Which tokens begin a word for masking: each family's rule, and text without spaces.

Taggers need another answer, from the text itself: `ops.word_spans.find_word_spans`.
"""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

# Code points of scripts that put no spaces between words, first and last: Thai, Lao and Tibetan; Myanmar;
# Khmer; Tai Le to Khmer symbols; Tai Tham; Han, kana, Bopomofo and Yi with their punctuation; Javanese and
# Myanmar extensions; Tai Viet; compatibility ideographs; their vertical and full-width forms; old kana; the planes
# of rare ideographs. Hangul, which is written with spaces, is not among them, but for its compatibility letters.
_UNSPACED = (
    (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF), (0x2E80, 0xA4CF),
    (0xA980, 0xA9FF), (0xAA60, 0xAADF), (0xF900, 0xFAFF), (0xFE30, 0xFE4F), (0xFF00, 0xFF9F), (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)  # fmt: skip
# As the originals list them: ', <, = and > are not among them.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_ENGLISH = frozenset(string.ascii_letters) | _PUNCTUATION


def sentencepiece_word_starts(pieces: Sequence[str], space: str, non_english: Any) -> Any:
    """Which pieces of a SentencePiece vocabulary begin a word; bool [V].

    `_is_start_piece_sp` in google-research/albert `create_pretraining_data.py` and `_is_start_piece`
    in zihangdai/xlnet `data_utils.py`: pieces that begin with the space or "<", and single ASCII
    punctuation marks but ' < = >; for ALBERT (`non_english`) also each piece that holds anything but ASCII letters and
    these marks: digits, currency signs, letters of other alphabets. One deviation, where XLNet's
    rule takes a sentence of Chinese, Japanese or Thai for one word: a piece that holds a character of
    a script without spaces begins a word in either family. (Korean is written with spaces.)
    """

    def begins(piece):
        if piece.startswith((space, "<")) or piece in _PUNCTUATION:
            return True
        return not _ENGLISH.issuperset(piece) if non_english else any(_is_unspaced(ord(c)) for c in piece)

    return np.array([begins(piece) for piece in pieces])


def holds_unspaced_bytes(token: bytes) -> bool:
    """Whether a character of a script without spaces begins within `token`, bytes of UTF-8.

    A character that the token cuts off counts if all that its first bytes can become are of such scripts.
    """
    for position, byte in enumerate(token):
        length = 2 if 0xC2 <= byte < 0xE0 else 3 if 0xE0 <= byte < 0xF0 else 4 if 0xF0 <= byte < 0xF5 else 0
        if not length:  # ASCII, or no first byte
            continue
        code = byte & (0xFF >> (length + 1))
        for number in range(1, length):
            code <<= 6
            if position + number < len(token):
                code |= token[position + number] & 0x3F
            else:  # the fewest and the most that the missing bits can be
                missing = 6 * (length - number)
                first = (code >> 6) << missing
                last = first | ((1 << missing) - 1)
                return any(begin <= first and last <= end for begin, end in _UNSPACED)
        if _is_unspaced(code):
            return True
    return False


def _is_unspaced(code):
    return any(begin <= code <= end for begin, end in _UNSPACED)
