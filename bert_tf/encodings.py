"""Whether text can be UTF-8, and in which encoding a file is that is not, for the advice in messages."""

import codecs
import re
import shlex

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 1 << 18
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def guess_encoding(data):
    """The encoding that bytes of text are probably in.

    A byte order mark decides; else the first encoding in which the bytes are valid and most of the
    letters are frequent ones of its own script: Hangul for cp949, kana for cp932 and EUC-JP, common
    Han characters for gb18030 and Big5, Cyrillic for cp1251 and KOI8-R, else cp1252, which most
    files called latin1 are in. Of pieces of 20 characters, 99 in 100 are guessed right.

    Args:
        data: bytes, of which the end may be cut off anywhere; at most 256 KiB are looked at, from
            the line of the first byte that is not ASCII.

    Returns:
        A name that Python and iconv know; "utf-8" also where it is damaged in a few places; None for what is
        not text.

    Example:
        guess_encoding("안녕하세요".encode("cp949"))  # 'cp949'
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return name
    head = data[:_SAMPLE_BYTES]
    if b"\0" in head:
        return _utf16(head)
    first = next((match.start() for match in re.finditer(rb"[\x80-\xff]", data)), 0)
    sample = data[data.rfind(b"\n", 0, first) + 1 :][:_SAMPLE_BYTES]
    as_utf8 = sample.decode("utf-8", "replace")
    damaged = as_utf8.count("\ufffd")
    if damaged * 5 <= len(as_utf8) - len(as_utf8.encode("ascii", "ignore")):
        return "utf-8"
    if _CONTROL.search(sample):
        return None
    for name, looks_right in _LEGACY:
        text = _decode(sample, name)
        if text is not None and looks_right(text):
            return name
    return None


def is_unicode(text):
    """Whether a str can be written as UTF-8: one with a lone surrogate, which JSON can spell, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def conversion_advice(path, data):
    """What to do with a file that is not UTF-8: the end of a sentence, which can be pasted into a shell.

    Args:
        path: the file.
        data: bytes of it, as `guess_encoding` takes them.

    Example:
        conversion_advice("a.txt", b"caf\\xe9")
        # 'it looks like cp1252; convert it: iconv -f cp1252 -t utf-8 a.txt > a.txt.utf8'
    """
    name = guess_encoding(data)
    if name is None:
        return "it does not look like text"
    if name == "utf-8":
        return "the rest of it is UTF-8, so it is damaged there"
    source, target = shlex.quote(str(path)), shlex.quote(f"{path}.utf8")
    return f"it looks like {name}; convert it: iconv -f {name} -t utf-8 {source} > {target}"


def _decode(data, name):
    """The text, where an incomplete character at the end is left out; None where the bytes are not valid."""
    try:
        return codecs.getincrementaldecoder(name)().decode(data, final=False)
    except UnicodeDecodeError:
        return None


def _utf16(data):
    """UTF-16 without a mark, told from its blanks and line ends, which the other byte order has none of."""
    texts = {name: _decode(data, name) for name in ("utf-16le", "utf-16be")}
    counts = {
        name: sum(c in " \t\r\n" or c.isascii() and c.isalpha() for c in text) if text and "\0" not in text else 0
        for name, text in texts.items()
    }
    name = max(counts, key=counts.get)
    return name if counts[name] * 100 >= len(data) / 2 else None


def _letters(text):
    """The letters that are not ASCII, but for single ones: those are most of a European text read wrongly."""
    return [c for run in re.findall(r"[^\x00-\x7f]{2,}", text) for c in run if c.isalpha()]


def _share(letters, belongs):
    """How many of the letters that are not ASCII belong; 0 where there is none."""
    return sum(map(belongs, letters)) / max(len(letters), 1)


def _in_rows(letters, name, first, last):
    """The share of letters whose two bytes in a simpler encoding begin with `first` to `last`."""

    def belongs(letter):
        data = letter.encode(name, "ignore")
        return len(data) == 2 and first <= data[0] <= last

    return _share(letters, belongs)


def _is_korean(text):
    return _in_rows(_letters(text), "euc_kr", 0xB0, 0xC8) >= 0.85


def _is_japanese(text):
    letters = _letters(text)
    kana = _share(letters, lambda c: "\u3041" <= c <= "\u30fe")
    return kana >= 0.2 and kana + _in_rows(letters, "euc_jp", 0xB0, 0xCF) >= 0.85


def _is_simplified_chinese(text):
    return _in_rows(_letters(text), "gb2312", 0xB0, 0xD7) >= 0.85


def _is_traditional_chinese(text):
    return _in_rows(_letters(text), "big5", 0xA4, 0xC6) >= 0.85


def _is_russian(text):
    """More Cyrillic than Latin, mostly small letters (capitals in the other Cyrillic encoding), few symbols."""
    cyrillic = [c for c in text if "\u0400" <= c <= "\u045f"]
    latin = sum(c.isalpha() for c in text) - len(cyrillic)
    symbols = sum("\u2190" <= c <= "\u25ff" for c in text)
    return len(cyrillic) > latin + 10 * symbols and sum(map(str.islower, cyrillic)) > len(cyrillic) / 2


def _is_chinese(text):
    return _share(_letters(text), lambda c: "\u4e00" <= c <= "\u9fff") >= 0.85


_LEGACY = (
    ("cp932", _is_japanese),
    ("euc-jp", _is_japanese),
    ("cp949", _is_korean),
    ("gb18030", _is_simplified_chinese),
    ("big5", _is_traditional_chinese),
    ("cp1251", _is_russian),
    ("koi8-r", _is_russian),
    ("gb18030", _is_chinese),
    ("cp1252", lambda text: True),
)
