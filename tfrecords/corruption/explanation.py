"""What a corruption says of a row, and how it is put in lines.

A corruption explains itself by a method `explain(batch, features, seed, tokenizer)`: of a batch,
the features it made of it, the seed and the tokenizer, it yields an `Explained` for each row.
`inspection` adds what all objectives share.
"""

import dataclasses

from bert_tf import console


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
    yield from console.table(rows, right=[0])


def field(name, content, width):
    """`name` and the content beside it, wrapped; a list is wrapped between its items only."""
    indent = 11
    room = width - indent
    items = console.words(content, room) if isinstance(content, str) else content
    for number, line in enumerate(console.wrap(items, room)):
        yield f"{name if number == 0 else '':<{indent}}{line}".rstrip()
