"""Strategies of hypothesis that damage what a file holds, and the one rule that all properties check.

The rule: whatever is read ends in an answer or in a `UserError`, whose message is one short line, in
bounded time. A traceback of any other kind fails the property.
"""

import contextlib
import json
import os
import time

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from bert_tf.errors import UserError

#: Cases of each property in the suite; tests/checks/properties.py sets twenty times as many.
CASES = int(os.environ.get("PROPERTY_CASES", "1"))
#: Seconds that one case may take. Two orders above what is usual, for a machine that others use too.
SECONDS = 20.0
#: Characters of a message: a sentence or two with a path in it.
LONGEST_MESSAGE = 2000


def cases(number):
    """The settings of a property that is tried `number` times in the suite; always the same cases there.

    What fails is shown as it was drawn: to look for a smaller case takes minutes where each reads a file.
    """
    return settings(
        max_examples=number * CASES, deadline=None, derandomize=CASES == 1, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@contextlib.contextmanager
def answer_or_user_error():
    """Passes over a `UserError` with a short message; anything else that is raised fails the test."""
    start = time.monotonic()
    try:
        yield
    except UserError as error:
        message = str(error)
        assert message and len(message) < LONGEST_MESSAGE, f"{len(message)} characters: {message[:200]}"
        assert "Traceback" not in message
    assert time.monotonic() - start < SECONDS


HOSTILE = ["", " ", "\x00", "../x", "/etc/passwd", "nan", "1e999", "[MASK]", "\ufeff", "é" * 300, "가", "null"]
texts = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE))
numbers = st.one_of(
    st.integers(-3, 70), st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30, 10**80]),
    st.floats(allow_nan=True, allow_infinity=True),
)  # fmt: skip
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
) | st.sampled_from([65, 70, 300, 2000]).map(lambda depth: _nested(depth))


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def places(value, prefix=()):
    """The paths to everything in a JSON value, down to ten levels: tuples of keys and indexes."""
    yield prefix
    if len(prefix) == 10:
        return
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*prefix, key))


@st.composite
def damaged(draw, value):
    """A copy of a JSON value with one to three of its parts replaced, removed, added to or exchanged."""
    for _ in range(draw(st.integers(1, 3))):
        value = _change(value, draw(st.sampled_from(sorted(places(value), key=repr))), draw)
    return value


def _change(value, path, draw):
    if path:
        child = _change(value[path[0]], path[1:], draw)
        if child is _REMOVED:
            if isinstance(value, dict):
                return {k: v for k, v in value.items() if k != path[0]}
            return value[: path[0]] + value[path[0] + 1 :]
        if isinstance(value, dict):
            return value | {path[0]: child}
        return [child if i == path[0] else v for i, v in enumerate(value)]
    kind = draw(st.sampled_from(["replace", "remove", "add", "double"]))
    if kind == "add" and isinstance(value, dict):
        return value | {draw(texts): draw(values)}
    if kind == "add" and isinstance(value, list):
        return [*value, draw(values)]
    if kind == "double" and isinstance(value, list):
        return value + value
    if kind == "remove":
        return _REMOVED
    return draw(values)


_REMOVED = object()


def as_json(value):
    """JSON text of a damaged value, however deep it is; NaN and infinities as Python writes them."""
    if value is _REMOVED:
        return ""
    depth, inner = 0, value
    while isinstance(inner, list) and len(inner) == 1:
        depth, inner = depth + 1, inner[0]
    if depth > 60:
        return "[" * depth + as_json(inner) + "]" * depth
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 5000


@st.composite
def damaged_bytes(draw, data):
    """A copy of `data` that is cut, or has bytes replaced, or another encoding."""
    kind = draw(st.sampled_from(["cut", "bytes", "zeros", "utf-16", "twice"]))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    if kind == "cut":
        return data[:at]
    if kind == "bytes":
        return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 1 :]
    if kind == "zeros":
        return data[:at] + b"\x00" * (len(data) - at)
    if kind == "utf-16":
        return data.decode("utf-8", "replace").encode("utf-16")
    return data + data


@st.composite
def damaged_file(draw, path):
    """What the file holds, with damage: to its first bytes, or to its values, of a file of JSON either of them."""
    whole = path.read_bytes()
    if path.suffix == ".json" and draw(st.booleans()):
        return as_json(draw(damaged(json.loads(whole)))).encode()
    return draw(damaged_bytes(whole[:4000])) + whole[4000:]
