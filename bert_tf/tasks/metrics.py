"""The metrics of fine-tuning tasks, in float64 NumPy over the whole evaluation set.

All take arrays over every example at once, never batch means, so they are exact for any batch size.
"""

import numpy as np


def accuracy(labels, predictions):
    """The share of equal entries of two int arrays."""
    return float(np.mean(np.asarray(labels) == np.asarray(predictions)))


def confusion(labels, predictions, num_labels):
    """[num_labels, num_labels] counts; rows are the true labels, columns the predictions."""
    flat = np.asarray(labels, np.int64) * num_labels + np.asarray(predictions, np.int64)
    return np.bincount(flat, minlength=num_labels**2).reshape(num_labels, num_labels)


def f1_scores(labels, predictions, num_labels):
    """F1 of each label, 2 TP / (2 TP + FP + FN); 0 for a label neither true nor predicted anywhere."""
    counts = confusion(labels, predictions, num_labels).astype(np.float64)
    hits = np.diag(counts)
    total = counts.sum(axis=0) + counts.sum(axis=1)
    return np.divide(2 * hits, total, out=np.zeros(num_labels), where=total > 0)


def by_label(labels, predictions, names):
    """{name: {"precision", "recall", "f1", "support"}} of each label; 0 where undefined.

    Args:
        labels, predictions: int arrays.
        names: str, one a label. `support` is how often the label is true.
    """
    counts = confusion(labels, predictions, len(names))
    hits, true, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    f1 = f1_scores(labels, predictions, len(names))
    return {
        name: {
            "precision": float(hits[i] / max(predicted[i], 1)),
            "recall": float(hits[i] / max(true[i], 1)),
            "f1": float(f1[i]),
            "support": int(true[i]),
        }
        for i, name in enumerate(names)
    }


def macro_f1(labels, predictions, num_labels):
    """The mean of `f1_scores` over the labels that are true or predicted somewhere."""
    seen = np.union1d(labels, predictions)
    return float(np.mean(f1_scores(labels, predictions, num_labels)[seen]))


def matthews(labels, predictions, num_labels):
    """Matthews correlation coefficient (Matthews 1975; for several classes Gorodkin 2004).

    0 where it is undefined, because all labels or all predictions are the same.
    """
    counts = confusion(labels, predictions, num_labels).astype(np.float64)
    true, predicted, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    covariance = np.trace(counts) * total - true @ predicted
    scale = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float(covariance / np.sqrt(scale)) if scale > 0 else 0.0


def pearson(labels, predictions):
    """Pearson's correlation of two float arrays; 0 where either is constant."""
    x = np.asarray(labels, np.float64)
    y = np.asarray(predictions, np.float64)
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else 0.0


def spearman(labels, predictions):
    """Spearman's rank correlation, ties sharing their mean rank; 0 where either is constant."""
    return pearson(ranks(labels), ranks(predictions))


def ranks(values):
    """Ranks from 1, equal values sharing the mean of theirs; float64, as long as `values`."""
    _, inverse, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def collapse(labels, predictions, names, what="example"):
    """A sentence if all predictions are one class while the labels are several, else None.

    Fine-tuning large encoders on small data does this in some runs (Devlin et al. 2019, section 4.1;
    Mosbach et al. 2021): the dev metric is then the majority baseline and another seed may be fine.
    """
    predicted = np.unique(predictions)
    if len(predicted) != 1 or len(np.unique(labels)) < 2:
        return None
    share = float(np.mean(np.asarray(labels) == predicted[0]))
    return (
        f"collapsed: every {what} is predicted '{names[predicted[0]]}', which is right for {100 * share:.1f} % "
        "of them; try another seed, a lower learning rate, a longer warm-up or more epochs"
    )


def log_softmax(logits):
    """float64 log probabilities over the last axis."""
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
