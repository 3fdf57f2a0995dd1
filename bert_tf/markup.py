"""HTML and SVG as a tree of elements: what comes from data is escaped when the tree is written, wherever it stands."""

import re
from typing import Any
from xml.etree import ElementTree

#: Characters that HTML forbids, and lone surrogates, which UTF-8 has no bytes for.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def h(tag: str, *children: Any, **attributes: Any) -> ElementTree.Element:
    """An element.

    Args:
        tag: such as "p".
        children: str, numbers, elements, lists of them, or None for nothing.
        attributes: `class_` is class, and other underscores are hyphens; None and False leave one out.

    Returns:
        An `xml.etree.ElementTree.Element`.

    Example:
        render(h("p", "1 < 2", class_="note"))  # '<p class="note">1 &lt; 2</p>'
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    kept = {name: _clean(value) for name, value in names.items() if value is not None and value is not False}
    element = ElementTree.Element(tag, kept)
    _append(element, children)
    return element


def svg(width: float, height: float, *children: Any, label: str) -> ElementTree.Element:
    """A drawing as wide as its place on the page; `label` says to those who cannot see it what it shows."""
    element = h("svg", *children, role="img", aria_label=label)
    element.set("viewBox", f"0 0 {width} {height}")
    return element


def render(element: ElementTree.Element) -> str:
    """The HTML of an element, a str."""
    return ElementTree.tostring(element, encoding="unicode", method="html")


def breakable(name: str) -> list[Any]:
    """The name of a metric or setting as children for `h`; a line may break after each underscore and dot."""
    parts = re.split(r"(?<=[_.])(?=.)", name)
    return [[part, h("wbr")] for part in parts[:-1]] + [parts[-1]]


def _append(element, children):
    for child in children:
        if child is None:
            continue
        if isinstance(child, (list, tuple)):
            _append(element, child)
        elif isinstance(child, ElementTree.Element):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + _clean(child)
        else:
            element.text = (element.text or "") + _clean(child)


def _clean(value):
    return _FORBIDDEN.sub("\ufffd", str(value))
