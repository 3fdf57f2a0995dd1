"""The frame of a page: one HTML file with its style, without scripts and outside references."""

import functools
from pathlib import Path

from bert_tf.reporting.markup import h, render

#: A browser loads nothing and runs nothing, whatever the page holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title, parts):
    """The text of an HTML file.

    Args:
        title: str, what the window is called.
        parts: list of elements.
    """
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", http_equiv="Content-Security-Policy", content=POLICY),
        h("meta", name="color-scheme", content="light dark"),
        h("link", rel="icon", href="data:,"),
        h("title", title),
        h("style", _style()),
    )
    return "<!doctype html>\n" + render(h("html", head, h("body", h("main", parts)), lang="en")) + "\n"


def section(title, *children, note=None):
    """A part of the page under a heading, or None where nothing is in it."""
    children = [child for child in children if child is not None and child != []]
    if not children:
        return None
    return h("section", h("h2", title), h("p", note, class_="note") if note else None, children)


def details(summary, *children):
    """Something that is folded away."""
    return h("details", h("summary", summary), children)


@functools.cache
def _style():
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
