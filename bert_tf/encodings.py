"""Guesses the encoding of text that is not UTF-8, and compares names in several Unicode forms."""

import codecs
import re
import shlex
import unicodedata
from collections.abc import Iterable

from bert_tf.files import is_address
from bert_tf.types import StrPath

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 1 << 18
_GUESS_BYTES = 1 << 14
_LEGACY = ["cp932", "euc_jp", "cp949", "gb18030", "big5", "cp1251", "koi8_r", "cp1252"]
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def guess_encoding(data: bytes) -> str | None:
    """The encoding that bytes of text are probably in.

    A byte order mark decides. Otherwise it is UTF-8, UTF-16, or one of the older encodings of Japanese, Korean,
    Chinese, Russian and Western European text, as charset-normalizer guesses.

    Args:
        data: bytes, of which the end may be cut off anywhere; at most 256 KiB are looked at, from
            the line of the first byte that is not ASCII.

    Returns:
        A name that Python and iconv know. "utf-8" also for UTF-8 that is damaged in a few places; None for bytes
        that are not text.

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
    if not re.search(rb"[\x80-\xff]{2}", sample):  # single letters among ASCII: Western European
        return "cp1252"
    from charset_normalizer import from_bytes

    head = sample[:_GUESS_BYTES]
    # Half a character at the end excludes its encoding; a character has at most four bytes.
    guesses = [from_bytes(head[: len(head) - cut], cp_isolation=_LEGACY).best() for cut in range(min(4, len(head)))]
    best = min(filter(None, guesses), key=lambda guess: (guess.chaos, -guess.coherence), default=None)
    guess = best.encoding.replace("_", "-") if best else None
    if guess == "cp949" and len(re.findall(rb"\x82[\x9f-\xf1]", sample)) > 1:  # hiragana in cp932
        return "cp932"
    return guess


def is_unicode(text: str) -> bool:
    """Whether a str can be written as UTF-8. A str with a lone surrogate, which JSON can spell, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def find_name(name: str, names: Iterable[str]) -> str | None:
    """The element of `names` that equals `name`, also in another Unicode form (NFD, as macOS writes it); else None."""
    if name in names:
        return name
    composed = unicodedata.normalize("NFC", name)
    return next((other for other in names if unicodedata.normalize("NFC", other) == composed), None)


def conversion_advice(path: StrPath, data: bytes) -> str:
    """Says how to convert a file that is not UTF-8: the end of a sentence, with a command for a shell.

    Args:
        path: the file, or its address.
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
    what, path = ("a copy of it", str(path).rpartition("/")[2]) if is_address(path) else ("it", path)
    source, target = shlex.quote(str(path)), shlex.quote(f"{path}.utf8")
    return f"it looks like {name}; convert {what}: iconv -f {name} -t utf-8 {source} > {target}"


def _decode(data, name):
    """The text, where an incomplete character at the end is left out; None where the bytes are not valid."""
    try:
        return codecs.getincrementaldecoder(name)().decode(data, final=False)
    except UnicodeDecodeError:
        return None


def _utf16(data):
    """The byte order of UTF-16 without a mark: the one in which the bytes have spaces, line ends and letters."""
    texts = {name: _decode(data, name) for name in ("utf-16le", "utf-16be")}
    counts = {
        name: sum(c in " \t\r\n" or (c.isascii() and c.isalpha()) for c in text) if text and "\0" not in text else 0
        for name, text in texts.items()
    }
    name = max(counts, key=lambda name: counts[name])
    return name if counts[name] * 100 >= len(data) / 2 else None
