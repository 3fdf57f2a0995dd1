"""The metrics of fine-tuning tasks, by scikit-learn and SciPy over the whole evaluation set.

All take arrays over every example at once, never batch means, so they are exact for any batch size. Both packages are
imported on first use: they take a second to load, and most commands compute no metric.
"""

import numpy as np


def cross_entropy(labels, logits):
    """The mean of -log p(label), in nats. labels: int [N]; logits: float [N, C]."""
    return float(-np.mean(log_softmax(logits)[np.arange(len(labels)), labels]))


def log_softmax(logits):
    """float64 log probabilities over the last axis."""
    from scipy.special import log_softmax as log_softmax_of

    return log_softmax_of(np.asarray(logits, np.float64), axis=-1)


def accuracy(labels, predictions):
    """The fraction of equal entries of two int arrays."""
    return float(np.mean(np.asarray(labels) == predictions))


def by_label(labels, predictions, names):
    """{name: {"precision", "recall", "f1", "support"}} of each label; 0 where undefined.

    Args:
        labels, predictions: int arrays.
        names: str, one for each label. `support` is the number of examples with the label.
    """
    from sklearn.metrics import precision_recall_fscore_support

    options = {"labels": range(len(names)), "average": None, "zero_division": 0}
    return scores_by_name(names, precision_recall_fscore_support(labels, predictions, **options))


def scores_by_name(names, scores):
    """What scikit-learn and seqeval return for several classes, as `by_label` returns it."""
    return {
        name: {"precision": float(precision), "recall": float(recall), "f1": float(f1), "support": int(support)}
        for name, precision, recall, f1, support in zip(names, *scores, strict=True)
    }


def pearson(labels, predictions):
    """Pearson's correlation of two float arrays; 0 if either is constant."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels, predictions):
    """Spearman's rank correlation, equal values having the mean of their ranks; 0 if either is constant."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def _correlation(function, labels, predictions):
    x, y = np.asarray(labels, np.float64), np.asarray(predictions, np.float64)
    return float(function(x, y).statistic) if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0


def collapse(labels, predictions, names, what="example"):
    """`collapsed`, if all predictions are one class and the labels are not.

    Fine-tuning large encoders on small data does this in some runs (Devlin et al. 2019, section 4.1;
    Mosbach et al. 2021): the dev metric is then the majority baseline and another seed may be fine.
    """
    predicted = np.unique(predictions)
    return collapsed(
        len(predicted) == 1 and len(np.unique(labels)) > 1,
        f"every {what} is predicted '{names[predicted[0]]}', which is right for "
        f"{100 * accuracy(labels, predictions):.1f} % of them; try another seed, a lower learning rate, a longer "
        "warm-up or more epochs",
    )


def collapsed(is_collapsed, problem):
    """{"collapsed": bool}, and where it is True "warning", a text with the `problem` and what to do."""
    return {"collapsed": True, "warning": f"collapsed: {problem}"} if is_collapsed else {"collapsed": False}


def without_warning(scores):
    """Metrics of a baseline, whose predictions may all be the same."""
    return {name: value for name, value in scores.items() if name not in ("collapsed", "warning")}
