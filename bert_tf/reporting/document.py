"""The frame of a page: one HTML file with its style and perhaps one script, without outside references."""

import base64
import hashlib
from pathlib import Path

from bert_tf.markup import h, render

#: A browser loads nothing and runs nothing but the script of the page, whatever the page holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title, parts, script=None):
    """The text of an HTML file.

    Args:
        title: str, what the window is called.
        parts: list of elements.
        script: text of the JavaScript that the browser runs when all parts are there; None for none.
    """
    policy, scripts = POLICY, []
    if script is not None:
        checksum = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
        policy, scripts = f"{POLICY}; script-src 'sha256-{checksum}'", [h("script", script)]
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="color-scheme", content="light dark"),
        h("link", rel="icon", href="data:,"),
        h("title", title),
        h("style", (Path(__file__).parent / "style.css").read_text(encoding="utf-8")),
    )
    return "<!doctype html>\n" + render(h("html", head, h("body", h("main", parts), scripts), lang="en")) + "\n"


def section(title, *children, note=None):
    """A part of the page under a heading, or None where nothing is in it."""
    children = [child for child in children if child is not None and child != []]
    if not children:
        return None
    return h("section", h("h2", title), h("p", note, class_="note") if note else None, children)


def details(summary, *children):
    """Something that is folded away."""
    return h("details", h("summary", summary), children)
