"""Sentences out of a document's text, by rules.

One compiled pattern finds what could end a sentence, a few look-ups decide. English abbreviations, initials,
decimals and numbered lists are known; the full stops of Chinese, Japanese, Korean, Hindi, Arabic, Urdu, Armenian,
Ethiopic, Burmese and Khmer end sentences too.
"""

import re

# A document whose lines are longer than this on average is taken for paragraphs, not sentences.
LONG_LINE = 200

_CJK = "。！？｡"
_CLOSERS = "\"'”’»)\\]}」』）》〉】"
_MARKS = rf"[.!?…؟۔।॥։።၊။។{_CJK}]"
# Not `_MARKS+`: `re` skips quickly what cannot begin a match only for a plain set.
_END = re.compile(rf"({_MARKS}{_MARKS}*)([{_CLOSERS}]*)(\s*)")
_OPENERS = "\"'“‘«([{¿¡—–-"
_WORD = re.compile(r"\w+")
_TOKEN_OPENERS = "\"'“‘«([{—–-"
# A line break before a lowercase letter is where a paragraph was wrapped, not where a sentence ends.
_WRAP = re.compile(r"[ \t]*\n[ \t]*(?=[a-zà-öø-ÿα-ωа-я])")

# Never the end of a sentence: a name or a number follows.
_TITLES = frozenset(
    "mr mrs ms dr prof rev hon gen sen rep gov capt cmdr col lt maj sgt adm messrs mme mlle st mt ft pres supt "
    "vs cf viz e.g i.e".split()
)
# Not the end where a number follows.
_NUMBERED = frozenset(
    "no nos fig figs vol vols p pp art sec ch chap eq jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
# The end only where the next word often begins a sentence.
_AMBIGUOUS = frozenset(
    "inc co corp ltd bros etc al jr sr esq dept univ assn ave blvd ph.d m.d b.a m.a d.c a.m p.m approx est".split()
)
_WITH_STOP = _TITLES | _AMBIGUOUS
_STARTERS = frozenset(
    "a after all also although an and another any are as at because before both but by did do does during each even "
    "every few finally first for from further had has have he her here his how however i if in indeed is it its "
    "last let many meanwhile more moreover most my never nevertheless no nor not now of on once one only or other our "
    "perhaps she should since so some still such than that the their then there therefore these they this those "
    "though through thus to today under until upon was we were what when where whether which while who why will with "
    "would yes yet you your".split()
)


def document_sentences(text, mode="auto"):
    """The sentences of a document, stripped, none empty.

    Args:
        text: str; lines end in "\\n".
        mode: "lines": each line is a sentence, as in BERT's own input format. "split": lines are
            paragraphs, split by `split_sentences`. "auto": "split" for a document of a single
            line or with lines of more than `LONG_LINE` characters on average, else "lines".
    """
    if mode == "auto":
        breaks = text.count("\n")
        mode = "split" if not breaks or len(text) > LONG_LINE * (breaks + 1) else "lines"
    if mode == "split":
        return split_sentences(text)
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def split_sentences(text):
    """Splits running text into sentences; only white space at their borders is dropped.

    A line end also ends a sentence, unless the next line begins with a lowercase letter (text that
    was wrapped at a width).
    """
    if "\n" in text:
        text = _WRAP.sub(" ", text)
    sentences = []
    for line in text.split("\n"):
        start = 0
        for match in _END.finditer(line):
            if _plainly_ends(line, start, match) or _ends_sentence(line, start, match):
                sentences.append(line[start : match.end(2)].strip())
                start = match.end()
        sentences.append(line[start:].strip())
    return list(filter(None, sentences))


def _plainly_ends(line, start, match):
    """Whether it is a full stop between an ordinary word and a capital: most are, and this is fast."""
    stop, after = match.span()
    if after != stop + 2 or line[stop] != "." or line[stop + 1] != " " or not line[after : after + 1].isupper():
        return False
    word = line[line.rfind(" ", start, stop) + 1 : stop]
    return len(word) > 1 and word.isalpha() and word.lower() not in _WITH_STOP


def _ends_sentence(line, start, match):
    after = match.end()
    marks = match[1]
    if after == len(line):
        return True
    if marks[-1] in _CJK:
        # A sentence that continues after the quotation: 「はい。」と言った, or with a dash or comma.
        return not (match[2] and line[after] in "とっ、，,")
    if not match[3]:
        return False  # 3.5, U.S, example.org
    at = after
    while at < len(line) - 1 and line[at] in _OPENERS:
        at += 1
    following = line[at]
    if following.islower():
        return False
    if marks != "." or match[2]:
        return True
    stop = match.start()
    word = line[max(line.rfind(" ", start, stop) + 1, start) : stop].lstrip(_TOKEN_OPENERS)
    lower = word.lower()
    if lower in _TITLES:
        return False
    if following.isdigit() and lower in _NUMBERED:
        return False
    if lower.isdigit() and not line[start:stop].strip(_TOKEN_OPENERS + " \t").strip("0123456789"):
        return False  # "1. First item"
    if lower in _AMBIGUOUS or _is_initials(word):
        next_word = _WORD.match(line, at)
        return next_word is not None and next_word[0].lower() in _STARTERS
    return True


def _is_initials(word):
    """J, J.R, U.S.A: single capitals between full stops."""
    return word[:1].isupper() and all(len(part) == 1 and part.isupper() for part in word.split("."))
