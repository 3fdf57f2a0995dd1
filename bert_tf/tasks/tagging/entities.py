"""Tags that mark entities: which they are, and precision, recall and F1 over whole entities."""

import re

from bert_tf.tasks.metrics import named_scores

_TAG = re.compile(r"([BIESLU])-(.+)")


def marks_entities(tags):
    """Whether every tag is "O" or a prefix with a type, as in "B-PER": entity tags, not parts of speech."""
    tags = set(tags) - {"O"}
    return bool(tags) and all(_TAG.fullmatch(tag) for tag in tags)


def complete(tags):
    """The sorted label set that holds, for every entity type seen, every prefix of the scheme.

    A dev set may hold the I- of a type whose entities were all one word long in training.
    """
    seen = {_TAG.fullmatch(tag).groups() for tag in tags if tag != "O"}
    prefixes = {prefix for prefix, _ in seen}
    # IOB1 has B- only where two entities touch; a training set may hold none.
    prefixes |= {"B", "I"} | ({"E", "S"} if prefixes & set("ES") else {"L", "U"} if prefixes & set("LU") else set())
    types = {kind for _, kind in seen}
    return ("O", *sorted((f"{p}-{t}" for t in types for p in prefixes), key=lambda tag: (tag[2:], tag[0])))


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
    return named_scores(types, _seqeval_scores(labels, predictions, None)) if types else {}


def _seqeval_scores(labels, predictions, average):
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support  # loads scikit-learn

    sides = ([_as_bioes(tags) for tags in side] for side in (labels, predictions))
    return precision_recall_fscore_support(*sides, average=average, zero_division=0)


def entities(tags):
    """The entities of one sentence: a list of (type, first word, last word)."""
    from seqeval.metrics.sequence_labeling import get_entities

    return [(str(kind), int(start), int(end)) for kind, start, end in get_entities(_as_bioes(tags))]


def _as_bioes(tags):
    # seqeval's conlleval rules know E- and S- and not their BILOU names.
    return [{"L": "E", "U": "S"}.get(t[0], t[0]) + t[1:] if _TAG.fullmatch(t) else t for t in tags]
