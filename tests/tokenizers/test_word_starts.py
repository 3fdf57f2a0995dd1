"""Word starts for masking, against the originals' rules and byte by byte."""

import pytest

from bert_tf.tokenizers.word_starts import holds_unspaced_bytes, sentencepiece_word_starts

SPACE = "\u2581"


def is_start_piece_sp(piece):
    """google-research/albert create_pretraining_data.py, of that name, under Python 3."""
    special_pieces = set('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
    english = set("abcdefghijklmnopqrstuvwxyz") | special_pieces
    return piece.startswith((SPACE, "<")) or piece in special_pieces or not all(c.lower() in english for c in piece)


def is_start_piece(piece):
    """zihangdai/xlnet data_utils.py, of that name."""
    return piece.startswith((SPACE, "<")) or piece in set('!"#$%&()*+,-./:;?@[\\]^_`{|}~')


PIECES = [
    "\u2581the", "\u2581", "ing", "Ing", "s", ".", ",", "...", "'", "'s", "-", "<", "<eop>", "=", "€", "£", "5", "19",
    "x2", "ka\u00df", "é", "сто", "σ", "ال", "हि", "가", "하다",
]  # fmt: skip


@pytest.mark.parametrize("non_english, original", [(True, is_start_piece_sp), (False, is_start_piece)])
def test_pieces_of_spaced_scripts_as_the_originals(non_english, original):
    expected = [original(piece) for piece in PIECES]
    assert sentencepiece_word_starts(PIECES, SPACE, non_english).tolist() == expected
    assert 5 < sum(expected) < len(PIECES)


def test_pieces_of_scripts_without_blanks_begin_words_in_either_family():
    pieces = ["中", "文化", "。", "は", "カタ", "ー", "ไทย", "ลาว", "မြန်", "ខ្មែរ", "བོད", "ꀀ", "𠀀", "a中"]
    for non_english in (True, False):
        assert sentencepiece_word_starts(pieces, SPACE, non_english).all()


def test_bytes():
    for text in "中文は、ไลམမខ𠀀":
        data = text.encode()
        assert holds_unspaced_bytes(data) and holds_unspaced_bytes(b"a" + data)
        assert not holds_unspaced_bytes(data[1:]), text  # the rest of a character goes on with it
    for cut in (b"\xe4", b"\xe4\xb8", b"\xe3", b"\xe3\x81", b"\xe0\xb8", b"\xad\xe5", b"\xe1\x80", b"\xf0\xa0"):
        assert holds_unspaced_bytes(cut), cut
    # Devanagari and Thai have the first byte e0, Georgian and Khmer e1, Hangul and Yi ea; emoji f0.
    for other in (b"\xe0", b"\xe1", b"\xea", b"\xf0", "é한हиع😀".encode(), b"abc", b"\xed\x95", b"\xff", b""):
        assert not holds_unspaced_bytes(other), other
