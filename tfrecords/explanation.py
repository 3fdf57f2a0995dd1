"""What a corruption says of a row, and how it is put in lines.

A corruption explains itself by a method `explain(batch, features, seed, tokenizer)`: of a batch,
the features it made of it, the seed and the tokenizer, it yields an `Explained` for each row.
`inspection` adds what all objectives share.
"""

import dataclasses
import unicodedata


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One predicted position.

    Attributes:
        position: int, in the row.
        token: str, what must be predicted.
        shown: str, what the model sees in its place; None where it sees that place empty.
        why: str, how it came to that.
    """

    position: int
    token: str
    shown: str | None
    why: str


@dataclasses.dataclass(frozen=True)
class Explained:
    """What a corruption did to one row.

    Attributes:
        rule: str, how much is predicted and why so much.
        predictions: list of `Prediction`, by position.
        notes: dict of name to str, further lines.
        tokens: list of str, the row as it is read where that is not the order of the shard; or None.
    """

    rule: str
    predictions: list
    notes: dict = dataclasses.field(default_factory=dict)
    tokens: list | None = None


def table(predictions):
    """Yields the lines of a table of `Prediction`s."""
    rows = [("position", "token", "model sees", "why")] if predictions else []
    rows += [(str(p.position), p.token, "-" if p.shown is None else p.shown, p.why) for p in predictions]
    widths = [max(map(display_width, column)) for column in zip(*rows)]
    for position, token, shown, why in rows:
        yield f"  {position:>{widths[0]}}  {_pad(token, widths[1])}  {_pad(shown, widths[2])}  {why}"


def field(name, content, width):
    """`name` and the content beside it, wrapped; a list is wrapped between its items only."""
    indent = 11
    wrapped, line = [], ""
    for item in _words(content, width - indent) if isinstance(content, str) else content:
        if line and display_width(line) + 1 + display_width(item) > width - indent:
            wrapped.append(line)
            line = item
        else:
            line = f"{line} {item}" if line else item
    wrapped.append(line)
    for number, line in enumerate(wrapped):
        yield f"{name if number == 0 else '':<{indent}}{line}".rstrip()


def display_width(text):
    """The columns that `text` takes on a terminal: two for a wide character such as a Hangul syllable."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _pad(text, width):
    return text + " " * (width - display_width(text))


def _words(text, width):
    """The words of `text`; one that is wider than a line is cut into pieces that fit."""
    for word in text.split():
        piece = ""
        for character in word:
            if piece and display_width(piece + character) > width:
                yield piece
                piece = ""
            piece += character
        yield piece
