"""Labels as people write them: which ones are missing, and which ones only look the same."""

import unicodedata

from bert_tf.config import nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief

#: How pandas writes a missing value, in lower case.
_MISSING = ("nan", "<na>")


def no_label(label, label_set=(), kind="label"):
    """Why a str cannot be a label; None if it can.

    Args:
        label: str.
        label_set: the configured label set, which may contain "nan".
        kind: "label", of a row; or "tag", of a word.
    """
    if not label.strip():
        return f"the {'word' if kind == 'tag' else 'row'} has no {kind}, which only predict allows; add it"
    if label.lower() in _MISSING and label not in label_set:
        return (
            f"the {kind} is '{label}', which pandas writes where there is none; correct it (a class of that name must "
            "be listed in task.labels)"
        )
    if not is_unicode(label):
        return f"the {kind} {brief(label)} is not Unicode text (a lone surrogate); correct it"
    return None


def not_in_label_set(kind, label, label_set):
    """Says that a label is not in a label set, and which one was perhaps meant. `kind`: "label" or "tag"."""
    for other in label_set:
        if unicodedata.normalize("NFC", other) == unicodedata.normalize("NFC", label):
            return (
                f"the {kind} '{label}' looks like '{other}' of the label set, but is {_form(label)} where that one is "
                f"{_form(other)} (NFD takes characters apart, as macOS does); bring all labels into one form, e.g. "
                "with Python's unicodedata.normalize('NFC', text)"
            )
    return f"the {kind} '{brief(label)[1:-1]}' is not in the label set{nearest(label, label_set)}"


def check_labels_of(examples, label_set):
    """Raises DataError for the first of `Examples` whose label, or one of whose labels, is not in the label set `label_set`."""
    label_set = dict.fromkeys(label_set)
    for index, labels in enumerate(examples.labels):
        for label in (labels,) if isinstance(labels, str) else labels:
            if label not in label_set:
                raise DataError(f"{examples.where(index)}: {not_in_label_set('label', label, label_set)}")


def check_distinct(labels, path):
    """Raises DataError if two labels of a file are the same text in different Unicode forms."""
    spellings = {}
    for label in labels:
        other = spellings.setdefault(unicodedata.normalize("NFC", label), label)
        if other != label:
            raise DataError(f"{path} holds both: {not_in_label_set('label', label, [other])}")


def class_weights(setting, labels, counts):
    """The weight of each label in the training loss: a tuple of floats, or None for none.

    Args:
        setting: `task.loss.class_weights`.
        labels: the label set.
        counts: how often each label occurs in the training file; "balanced" gives a label that does not occur weight 1.

    Raises:
        ConfigError: another number of weights than labels.
    """
    if setting is None:
        return None
    if setting == "balanced":
        return tuple(sum(counts) / (len(labels) * count) if count else 1.0 for count in map(int, counts))
    if len(setting) != len(labels):
        raise ConfigError(
            f"task.loss.class_weights has {len(setting)} weights, but there are {len(labels)} labels, in this order: "
            f"{', '.join(labels)}; give one weight for each"
        )
    return setting


def _form(text):
    forms = [form for form in ("NFC", "NFD") if unicodedata.is_normalized(form, text)]
    return f"in Unicode form {forms[0]}" if len(forms) == 1 else "in a mixed Unicode form"
