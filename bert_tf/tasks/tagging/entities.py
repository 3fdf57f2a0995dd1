"""Tags that mark entities: which they are, and precision, recall and F1 over whole entities."""

import re

from bert_tf.tasks.metrics import scores_by_name

_TYPED = re.compile(r"[BIESLU]-.+")
_PREFIXES = frozenset("BIESLU")
# "o", "0", "b-PER", "B_PER", "B": what is meant as one of an entity's tags.
_LIKE_ENTITY = re.compile(r"[BIESLU]([-_].+)?|[O0]", re.IGNORECASE)


def marks_entities(tags):
    """Whether tags mark entities, not parts of speech: each is "O" or a prefix with a type, as in "B-PER"; or each is
    "O" or a prefix alone, "B" or "I" among them.
    """
    tags = set(tags)
    others = tags - {"O"}
    if others <= _PREFIXES:
        return len(tags) > 1 and bool(others & {"B", "I"})
    return all(_TYPED.fullmatch(tag) for tag in others)


def find_odd(tags):
    """The tags that are not entity tags among those that are; a set, empty where all tags are, or none.

    Example:
        find_odd(["O", "B-PER", "B_LOC", "o"])  # {'B_LOC', 'o'}
    """
    tags = set(tags)
    others = tags - {"O"}
    if marks_entities(tags) or not others:
        return set()
    typed = {tag for tag in others if _TYPED.fullmatch(tag)}
    shows = any(tag[1:] or tag in "BIbi" for tag in others)  # that the others are not the letters of something else
    if typed or (shows and all(_LIKE_ENTITY.fullmatch(tag) for tag in tags)):
        return others - (typed or _PREFIXES)
    return set()


def complete(tags):
    """The sorted label set that holds, for every entity type seen, every prefix of the scheme.

    A dev set may hold the I- of a type whose entities were all one word long in training.
    """
    prefixes, types = (set(parts) for parts in zip(*((tag[0], tag[1:]) for tag in tags if tag != "O")))
    # IOB1 has B- only where two entities touch; a training set may hold none.
    prefixes |= {"B", "I"} | ({"E", "S"} if prefixes & set("ES") else {"L", "U"} if prefixes & set("LU") else set())
    return ("O", *sorted((p + t for t in types for p in prefixes), key=lambda tag: (tag[2:], tag[0])))


def entity_scores(labels, predictions):
    """Micro-averaged scores over entities; an entity is right if its type and both ends are.

    The rules are those of the CoNLL-2000 scorer (conlleval), by seqeval.

    Args:
        labels, predictions: lists of lists of tags.

    Returns:
        {"precision", "recall", "f1"}; 0 where undefined.
    """
    precision, recall, f1, _ = _seqeval_scores(labels, predictions, "micro")
    return {"precision": float(precision), "recall": float(recall), "f1": float(f1)}


def scores_by_type(labels, predictions):
    """{type: {"precision", "recall", "f1", "support"}} of each type of entity that is true or predicted."""
    types = sorted({kind for side in (labels, predictions) for tags in side for kind, _, _ in entities(tags)})
    return scores_by_name(types, _seqeval_scores(labels, predictions, None)) if types else {}


def _seqeval_scores(labels, predictions, average):
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support  # loads scikit-learn

    sides = ([_as_bioes(tags) for tags in side] for side in (labels, predictions))
    return precision_recall_fscore_support(*sides, average=average, zero_division=0)


def entities(tags):
    """The entities of one sentence: a list of (type, first word, last word); the type of tags without one is "_"."""
    from seqeval.metrics.sequence_labeling import get_entities

    return [(str(kind), int(start), int(end)) for kind, start, end in get_entities(_as_bioes(tags))]


def _as_bioes(tags):
    # seqeval's conlleval rules know E- and S- and not their BILOU names.
    return [{"L": "E", "U": "S"}.get(t[0], t[0]) + t[1:] if t in _PREFIXES or _TYPED.fullmatch(t) else t for t in tags]
