"""Text in columns on a terminal, where some characters are two columns wide."""

import unicodedata
from collections.abc import Iterable, Iterator


def display_width(text: str) -> int:
    """The columns that `text` takes on a terminal: two for a wide character such as a Hangul syllable."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrap(items: Iterable[str], width: int) -> Iterator[str]:
    """Yields lines of at most `width` columns, made of items that are not cut.

    Args:
        items: list of str.
        width: of a line; an item that is wider has a line of its own.
    """
    line = ""
    for item in items:
        if line and display_width(line) + 1 + display_width(item) > width:
            yield line
            line = item
        else:
            line = f"{line} {item}" if line else item
    yield line


def split_words(text: str, width: int) -> Iterator[str]:
    """Yields the words of `text`; one that is wider than `width` columns is cut into pieces that fit."""
    for word in text.split():
        piece = ""
        for character in word:
            if piece and display_width(piece + character) > width:
                yield piece
                piece = ""
            piece += character
        yield piece
