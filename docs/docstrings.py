"""Docstrings of this library as reStructuredText, in the sections that sphinx.ext.napoleon reads.

`name` in single backticks is code; an `Example:` is indented Python; lines `name: meaning` below a line of text are a list,
and so are those of values in quotes.
"""

import re
import textwrap

#: Sections whose lines are `name: meaning`, and those of free text.
ITEMS = ("Args", "Call arguments", "Attributes", "Raises", "Warns")
TEXT = ("Returns",)
_NAME = r'(?:"[^"]+"|`[^`]+`|[\w.*<>\[\]]+)'
ITEM = re.compile(rf"{_NAME}(?:(?:, | and ){_NAME})*(?:\([^)]*\))?: ")
VALUE = re.compile(r'"[^"]+"(?:, "[^"]+")*: ')


def to_rst(text, link):
    """Lines of reStructuredText.

    Args:
        text: a docstring without its indentation.
        link: function(name) -> the place to which code leads, or None.
    """
    return [line.rstrip() for line in _parts(_joined(text.expandtabs().splitlines()), lambda line: _marked(line, link))]


def _joined(lines):
    """Code in backticks that goes over the end of a line, on one line."""
    found, in_example = [], False
    for line in lines:
        if line.strip():
            in_example = (in_example and line.startswith(" ")) or line.strip() == "Example:"
        if found and not in_example and line.strip() and found[-1].count("`") % 2:
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def _below(lines, start):
    """The indented lines from `start` on without their indentation, and where they end; blank lines only within."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return textwrap.dedent("\n".join(lines[start:end])).splitlines(), end


def _parts(lines, mark):
    """The parts of a text whose first column is 0."""
    out, i = [], 0
    while i < len(lines):
        line, head = lines[i], lines[i].strip().removesuffix(":")
        run, end = _below(lines, i + 1)
        after_blank = i == 0 or not lines[i - 1].strip()
        if not line.strip():
            out.append("")
            i += 1
        elif line.startswith(" "):  # a block of its own
            run, end = _below(lines, i)
            out += ["", *_code(run), ""]
            i = end
        elif line.endswith(":") and head == "Example":
            out += ["", ".. rubric:: Example", "", *_code(run), ""]
            i = end
        elif line.endswith(":") and head in ITEMS and after_blank:
            out += [line, *_items(run, mark), ""]
            i = end
        elif line.endswith(":") and head in TEXT and after_blank:
            if _is_item(run, 0) and all(part.startswith(" ") for part in run[1:]):  # a hanging paragraph
                run = [" ".join(part.strip() for part in run)]
            first, *rest = _parts(run, mark)
            out += [f":{head.lower()}: {first}", *_indent(rest, 4), ""]
            i = end
        elif re.match(r"[-*] ", line):
            out += [*_bullet(line[2:], _text(lines, i + 1), mark)]
            i += 1 + len(_text(lines, i + 1))
        elif _is_item(lines, i):
            hanging = _text(lines, i + 1)
            out += ([""] if out and out[-1] and not _is_bullet(out) else []) + _bullet(line, hanging, mark)
            i += 1 + len(hanging)
            out += [""] if i < len(lines) and lines[i].strip() and not _is_item(lines, i) else []
        elif _hangs(lines, i):
            run = _text(lines, i + 1)
            if line.startswith("Source"):
                out += [mark(f"{line} {' '.join(part.strip() for part in run)}")]
            else:
                out += [mark(line), "", *_listed(textwrap.dedent("\n".join(run)).splitlines(), mark), ""]
            i += 1 + len(run)
        else:
            out.append(mark(line))
            i += 1
    return out


def _is_item(lines, i):
    """Whether a line is `name: meaning` in a list: a value in quotes, or one that goes on in an indented line."""
    return bool(
        VALUE.match(lines[i]) or (_hangs(lines, i) and ITEM.match(lines[i]) and not lines[i].startswith("Source"))
    )


def _hangs(lines, i):
    """Whether the next line is indented."""
    return lines[i + 1 : i + 2] != [] and lines[i + 1].startswith(" ")


def _text(lines, start):
    """The indented lines from `start` on, up to a blank line."""
    end = start
    while end < len(lines) and lines[end].startswith(" ") and lines[end].strip():
        end += 1
    return lines[start:end]


def _is_bullet(out):
    """Whether the last lines belong to a list."""
    last = [line for line in out if not line.startswith("  ")]
    return bool(last) and last[-1].startswith("* ")


def _bullet(line, hanging, mark):
    """An item of a list."""
    return [f"* {mark(line)}", *_indent([mark(part.strip()) for part in hanging], 2)]


def _listed(run, mark):
    """The lines below a line of text, each line of the first column an item."""
    out = []
    for i, line in enumerate(run):
        if not line.startswith(" "):
            out += _bullet(line, _text(run, i + 1), mark)
    return out


def _items(run, mark):
    """The lines of `Args:` and the like."""
    out, i = [], 0
    while i < len(run):
        name, colon, words = run[i].partition(": ")
        below, end = _below(run, i + 1)
        lines = _parts([words, *below], mark) if colon else [mark(run[i])]
        out += _indent([f"{name}{colon}{lines[0]}" if colon else lines[0], *_indent(lines[1:], 4)], 4)
        i = max(end, i + 1)
    return out


def _indent(lines, spaces):
    return [" " * spaces + line if line else line for line in lines]


def _code(block):
    """Lines of code as a block of it: Python where it is that, else text."""
    try:
        compile("\n".join(block), "example", "exec")
        language = "python"
    except SyntaxError:
        language = "text"
    return [f".. code-block:: {language}", "", *_indent(block, 3)]


def _marked(line, link):
    """A line of text whose code is a link or a literal, and whose other marks are text."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    return "".join(_linked(part, link) if i % 2 else _escaped(part, i > 0) for i, part in enumerate(parts))


def _linked(part, link):
    name = part.strip("`")
    return f":py:obj:`{name} <{link(name)}>`" if link(name) else f"``{name}``"


def _escaped(text, after_code):
    """Stars, bars and underscores at the end of a word are themselves; letters may follow code."""
    text = re.sub(r"([\\*|]|(?<=\w)_(?!\w))", r"\\\1", text)
    return "\\" + text if after_code and re.match(r"[\w'’-]", text) else text
