"""Text in columns on a terminal, where some characters are two columns wide."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells


def wrap(items: Iterable[str], width: int) -> Iterator[str]:
    """Yields lines of at most `width` columns, made of items that are not cut.

    Args:
        items: list of str.
        width: of a line; an item that is wider has a line of its own.
    """
    line = ""
    for item in items:
        if line and cell_len(line) + 1 + cell_len(item) > width:
            yield line
            line = item
        else:
            line = f"{line} {item}" if line else item
    yield line


def split_words(text: str, width: int) -> Iterator[str]:
    """Yields the words of `text`; one that is wider than `width` columns is cut into pieces that fit."""
    return (piece for word in text.split() for piece in chop_cells(word, width))
