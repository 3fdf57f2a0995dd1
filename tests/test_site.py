"""The site of docs/: its pages of the API have every public name, its pages for whoever comes from elsewhere every hint."""

import importlib
import re
from pathlib import Path

import pytest

from bert_tf import config

DOCS = Path(__file__).parent.parent / "docs"


def test_names_of_other_libraries_are_in_the_tables():
    """What `bert_tf.config` answers with a hint is in the tables, too."""
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "coming_from").glob("*.md"))
    assert [name for name in config.SYNONYMS if not re.search(rf"\b{name}\b", pages)] == []


@pytest.fixture
def api_pages(monkeypatch):
    """docs/api_pages.py, which needs Sphinx."""
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("api_pages")


def test_every_public_name_is_documented(api_pages):
    """`.ci/run` builds the pages; this says without a build what they would lack."""
    assert api_pages.undocumented() == []
    assert {path.stem for path in (DOCS / "api").glob("*.md")} == {*api_pages.PAGES, "index"}


def test_a_docstring_as_restructured_text(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    text = """
One line, of `Name` and `other`s.

Args:
    a, b: rate * n, <s>.
        "span": of words,
            of up to ten.
        The rest is text.

Returns:
    dict: one line,
        and another.

Example:
    f(`x`)
"""
    lines = importlib.import_module("docstrings").to_rst(text, {"Name": "bert_tf.Name"}.get)
    expected = """
One line, of :py:obj:`Name <bert_tf.Name>` and ``other``\\s.

Args:
    a, b: rate \\* n, <s>.

        * "span": of words,
          of up to ten.

        The rest is text.

:returns: dict: one line, and another.


.. rubric:: Example

.. code-block:: text

   f(`x`)
"""
    assert [line for line in lines if line] == [line for line in expected.splitlines() if line]
