"""The schemes of entity tags: recognizing, checking and rewriting them.

| scheme | an entity of one word | of three words | beside one of the same type |
|---|---|---|---|
| IOB1 (CoNLL-2003 as distributed) | `I` | `I I I` | the second begins with `B` |
| IOB2 | `B` | `B I I` | |
| BIOES | `S` | `B I E` | |
| BILOU | `U` | `B I L` | |

Ramshaw and Marcus 1995 (IOB1), Tjong Kim Sang and Veenstra 1999 (IOB2), Ratinov and Roth 2009 (BILOU). No TensorFlow is
imported.
"""

from bert_tf.tasks.tagging.entities import entities, marks_entities

SCHEMES = ("IOB1", "IOB2", "BIOES", "BILOU")
#: Scheme -> the prefixes of a first, a further and a last word, and of a single one.
_PREFIXES = {"IOB1": "IIII", "IOB2": "BIIB", "BIOES": "BIES", "BILOU": "BILU"}


def prefixes_of(tags):
    """The scheme that the prefixes in `tags` show: "BIOES" or "BILOU"; None where they are B and I alone."""
    prefixes = {tag[0] for tag in tags if tag != "O"}
    return "BIOES" if prefixes & set("ES") else "BILOU" if prefixes & set("LU") else None


def find_scheme(sentences):
    """The scheme that lists of tags follow.

    Tags that follow IOB2 and IOB1 are IOB2: they mark the same entities in both.

    Args:
        sentences: lists of tags.

    Returns:
        One of `SCHEMES`; None where the tags mark no entities, and where they break the scheme that they show.

    Example:
        find_scheme([["O", "I-PER", "I-PER", "B-PER"]])  # 'IOB1'
    """
    if not marks_entities(tag for tags in sentences for tag in tags):
        return None
    shown = prefixes_of(tag for tags in sentences for tag in tags)
    for scheme in (shown,) if shown else ("IOB2", "IOB1"):
        if all(find_break(tags, scheme) is None for tags in sentences):
            return scheme
    return None


def find_break(tags, scheme):
    """The first tag of a sentence that breaks the rules of a scheme.

    Returns:
        (index, why), `why` a clause such as "'I-PER' follows 'O', but an entity begins with B-"; None where none does.

    Example:
        find_break(["O", "I-PER"], "IOB2")[0]  # 1
    """
    allowed = set(_PREFIXES[scheme]) | {"B"}
    previous = "O"
    for index, tag in enumerate([*tags, "O"]):
        prefix, kind, last = tag[0], tag[2:], index == len(tags)
        if tag != "O" and prefix not in allowed:
            return index, f"'{tag}' has the prefix {prefix}-, which {scheme} does not have"
        same = previous != "O" and previous[2:] == kind
        if scheme == "IOB1":
            if prefix == "B" and not same:
                return index, f"'{tag}' does not follow an entity of its type, so it begins with I- in IOB1"
        elif scheme == "IOB2":
            if prefix == "I" and not same:
                return index, f"'{tag}' follows '{previous}', but an entity begins with B- in IOB2"
        else:
            is_open, inside = previous[0] in "BI", prefix in _PREFIXES[scheme][1:3]
            if inside and not (is_open and same):
                return index, f"'{tag}' follows '{previous}', but it continues an entity in {scheme}"
            if is_open and not inside:
                end, single = _PREFIXES[scheme][2:]
                after = "the sentence ends" if last else f"'{tag}' follows"
                why = f"the entity of '{previous}' is not finished where {after}; its last word has {end}-, a single one {single}-"
                return index - last, f"{why} in {scheme}"
        previous = tag
    return None


def rewrite(tags, scheme):
    """The tags of one sentence in another scheme: a list with the same entities.

    Entities are those that conlleval finds, so tags that break their own scheme are rewritten, too.

    Example:
        rewrite(["I-PER", "I-PER", "O", "I-LOC"], "BIOES")  # ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    first, inner, last, single = _PREFIXES[scheme]
    result, before = ["O"] * len(tags), None
    for kind, start, end in entities(tags):
        touches = scheme == "IOB1" and before == (kind, start - 1)
        with_type = tags[start][1:]  # "-PER"; "" of tags without a type
        for index in range(start, end + 1):
            prefix = single if start == end else first if index == start else last if index == end else inner
            result[index] = prefix + with_type
        if touches:
            result[start] = "B" + with_type
        before = (kind, end)
    return result
